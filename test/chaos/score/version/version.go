// Package version reports with which version of a module this program was built. Adapters name it in their description.
//
// It reads the build information of the running program, so that the table of a score names what was really linked, and not what a
// file of versions says.
package version

import "runtime/debug"

// OfModule returns the version of a module that the Go tool recorded in this program, "unknown" in a test binary.
func OfModule(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == module && m.Version != "" {
				return m.Version
			}
		}
	}
	return "unknown"
}
