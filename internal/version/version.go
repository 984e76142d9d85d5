// Package version says which build this is.
package version

import "runtime/debug"

// release is set by the linker; see the Makefile.
var release string

// String is the release that was built, or else what the toolchain knows of the build: a module's version such as
// "v0.3.1", or "(devel)".
func String() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}
