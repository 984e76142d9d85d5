// Package version identifies the build.
package version

import "runtime/debug"

// release is set by the linker; see the Makefile.
var release string

// String returns the release, or else the version of the module from the build information, such as "v0.3.1" or "(devel)".
func String() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version
	}
	return "unknown"
}
