// Package version says which version of a module this program was built with.
package version

import "runtime/debug"

// Of is the version of a module as the Go tool recorded it; "unknown" in a test binary.
func Of(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range append(info.Deps, &info.Main) {
			if m.Path == module && m.Version != "" {
				return m.Version
			}
		}
	}
	return "unknown"
}
