package vm

// goroutine names the goroutine that calls it, while it lives. With it a callback finds the thread that it is on, so
// that nesting is counted across compiled code.
func goroutine() uintptr
