//go:build !race

package cell

// pollText is the interrupt test of a loop, for one cell number. Reading the flag through a pointer costs 10 ns a turn,
// calling into compiled code 105 ns (2 cores, Go 1.26); the flag is only ever set while nobody relies on more.
const pollText = "if *stop__%d { rt__.Stopped() };"
