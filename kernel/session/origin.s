// This file is empty: it lets origin.go declare a function without a body.
