package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
)

// release is the version of this source tree.
const release = "0.1.0"

// version adds the revision that the binary was built from, when the build knows it.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return release
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return release + "+" + s.Value[:12]
		}
	}
	return release
}

type versionCommand struct{}

// Run prints the version.
func (versionCommand) Run(_ context.Context, t *terminal) error {
	fmt.Fprintf(t.out, "repa %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}
