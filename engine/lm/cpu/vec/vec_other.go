//go:build !amd64

package vec

// available is empty: no assembly is written for this architecture.
func available() []*Ops { return nil }
