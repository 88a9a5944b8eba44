// Package version says which version of a module this program was built with.
package version

import "runtime/debug"

// OfModule is the version of a module as the Go tool recorded it; "unknown" in a test binary.
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
