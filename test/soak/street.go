package main

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/mcpvisor/mcpvisor/test/servers"
)

// street is a folder with the configuration of the good server alone and of all, and a home.
type street struct{ root, dir, home string }

type entry map[string]any

func stdio(kind string, parameters ...string) entry {
	command, args := servers.Command(kind, parameters...)
	return entry{"command": command, "args": args}
}

// bad are the neighbours; each does what its name says.
func bad() map[string]entry {
	return map[string]entry{
		"silent": stdio("silent"), "silent-too": stdio("silent"), "dying": stdio("exits-at-once"),
		"flapping": stdio("crash-after", "after=2s"), "dropping": stdio("exits-after-list"), "slow": stdio("slow-start", "after=20s"),
		"flooding": stdio("stderr-flood"), "refusing": stdio("refuses-initialize"), "noisy": stdio("noise"),
		"missing": {"command": "no-such-program"},
	}
}

// build makes the folder. Its path is short: a socket lies in it.
func build() (s street, err error) {
	if s.root, err = os.MkdirTemp("", "soak"); err != nil {
		return s, err
	}
	s.dir, s.home = filepath.Join(s.root, "p"), filepath.Join(s.root, "h")
	all := bad()
	all["good"] = stdio("good")
	for file, entries := range map[string]map[string]entry{
		"alone.json": {"good": all["good"]}, "all.json": all, ".mcp.json": {"unapproved": stdio("good")},
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
