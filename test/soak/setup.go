package main

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/mcpvisor/mcpvisor/test/servers"
)

// testSetup is a folder with the configuration of the good server alone and of all, and a home.
type testSetup struct{ root, dir, home string }

// configEntry is one server of a configuration file, as JSON.
type configEntry map[string]any

// stdioEntry returns the entry of a fixture, which this same program plays.
func stdioEntry(kind string, parameters ...string) configEntry {
	command, args := servers.Command(kind, parameters...)
	return configEntry{"command": command, "args": args}
}

// badServers are the neighbours; each does what its name says.
func badServers() map[string]configEntry {
	return map[string]configEntry{
		"silent": stdioEntry("silent"), "silent-too": stdioEntry("silent"), "dying": stdioEntry("exits-at-once"),
		"flapping": stdioEntry("crash-after", "after=2s"), "dropping": stdioEntry("exits-after-list"), "slow": stdioEntry("slow-start", "after=20s"),
		"flooding": stdioEntry("stderr-flood"), "refusing": stdioEntry("refuses-initialize"), "noisy": stdioEntry("noise"),
		"missing": {"command": "no-such-program"},
	}
}

// newTestSetup makes the folder. Its path is short: a socket lies in it.
func newTestSetup() (s testSetup, err error) {
	if s.root, err = os.MkdirTemp("", "soak"); err != nil {
		return s, err
	}
	s.dir, s.home = filepath.Join(s.root, "p"), filepath.Join(s.root, "h")
	all := badServers()
	all["good"] = stdioEntry("good")
	for file, entries := range map[string]map[string]configEntry{
		"alone.json": {"good": all["good"]}, "all.json": all, ".mcp.json": {"unapproved": stdioEntry("good")},
	} {
		text, err := json.Marshal(map[string]any{"mcpServers": entries})
		if err == nil {
			err = os.MkdirAll(s.dir, 0o700)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(s.dir, file), text, 0o600)
		}
		if err != nil {
			return s, err
		}
	}
	for name, value := range map[string]string{
		"HOME": s.home, "XDG_CONFIG_HOME": s.home, "XDG_CACHE_HOME": s.home, "XDG_STATE_HOME": s.home, "XDG_RUNTIME_DIR": s.root,
	} {
		if err := os.Setenv(name, value); err != nil { // the control socket is looked for in this process, too
			return s, err
		}
	}
	return s, os.MkdirAll(s.home, 0o700)
}
