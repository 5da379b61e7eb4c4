package main

// commands is the table of verbs, in the order that help prints them.
func commands() []command {
	return []command{}
}
