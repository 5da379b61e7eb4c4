//go:build !amd64

package vec

// available is empty: no assembly is written for this architecture.
func available() []*Ops { return nil }

// Pause lets a waiting loop rest; here it does nothing.
func Pause() {}
