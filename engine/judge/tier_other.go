//go:build !linux || !(amd64 || arm64)

package judge

import (
	"errors"
	"runtime"
)

// Probe says that candidates run on Linux only so far.
func Probe() Report {
	platform := runtime.GOOS + "/" + runtime.GOARCH
	return Report{Platform: platform, Layers: []Layer{{
		Name: "platform", Needed: true, Detail: platform, Fix: "run searches on linux/amd64 or linux/arm64",
	}}}
}

func newTierC(interpreter) (launcher, error) {
	return nil, errors.New("judge: tier C needs linux/amd64 or linux/arm64")
}

func superviseMain() int { return 1 }
