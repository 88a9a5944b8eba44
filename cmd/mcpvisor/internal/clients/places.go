package clients

import (
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config/foreign"
)

// placeVariables returns the variables of this terminal that lead to other files, or to another daemon, than those which mcpvisor takes
// without them. An agent that a desktop has started has none of them: without them in its entry it would see other servers than the
// person who connects it.
func placeVariables(m foreign.Machine) map[string]string {
	defaults := map[string]string{"XDG_STATE_HOME": path.Join(m.Home, ".local/state"), "XDG_RUNTIME_DIR": fmt.Sprintf("/run/user/%d", os.Getuid())}
	if m.OS != "darwin" && m.OS != "windows" { // which have places of their own for these two
		defaults["XDG_CONFIG_HOME"], defaults["XDG_CACHE_HOME"] = path.Join(m.Home, ".config"), path.Join(m.Home, ".cache")
	}
	env := map[string]string{}
	for name, usual := range defaults {
		if dir, ok := m.Lookup(name); ok && filepath.IsAbs(dir) && filepath.Clean(dir) != filepath.FromSlash(usual) {
			env[name] = dir
		}
	}
	if store, ok := m.Lookup("MCPVISOR_STORE"); ok && store != "" {
		env["MCPVISOR_STORE"] = store
	}
	return env
}

// hasVariables reports whether an entry sets all of these variables to these values.
func hasVariables(spec messages.Spec, env map[string]string) bool {
	for name, value := range env {
		if spec.Env[name] != value {
			return false
		}
	}
	return true
}
