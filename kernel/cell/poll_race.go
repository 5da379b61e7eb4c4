//go:build race

package cell

// pollText calls into compiled code, where the flag is read atomically, so that the race detector sees no race.
const pollText = "if rt__.Polled(%d) { rt__.Stopped() };"
