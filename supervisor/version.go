package supervisor

import "runtime/debug"

// release is the version of this source: while a release is being made, its future version. "mcpvisor help changes" has a
// section of that name.
const release = "0.1.0-dev"

const modulePath = "github.com/mcpvisor/mcpvisor"

// Version returns which mcpvisor this program contains: "v0.1.0" where another module requires a released version, else the
// version of the source, and in a build of this module itself the commit too ("0.1.0-dev+2047bc5d1f0a", with ".modified" if files
// were changed since). Servers see it as the version of their client (Config.ClientVersion).
func Version() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(info)
}

// versionOf returns the version of a program that was built as info says; info is nil in a program without module information.
func versionOf(info *debug.BuildInfo) string {
	if info == nil {
		return release
	}
	if info.Main.Path == modulePath {
		return release + commitOf(info.Settings)
	}
	// A replaced module may be any source, so its required version says nothing.
	for _, m := range info.Deps {
		if m.Path == modulePath && m.Replace == nil && m.Version != "" && m.Version != "(devel)" {
			return m.Version
		}
	}
	return release
}

// commitOf returns the commit in the form that follows a version (https://semver.org, rule 10); empty if the Go tool recorded none.
func commitOf(settings []debug.BuildSetting) string {
	commit, modified := "", ""
	for _, s := range settings {
		switch s.Key {
		case "vcs.revision":
			commit = "+" + s.Value[:min(len(s.Value), 12)]
		case "vcs.modified":
			if s.Value == "true" {
				modified = ".modified"
			}
		}
	}
	if commit == "" {
		return ""
	}
	return commit + modified
}
