package clients

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
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

// placeNames are the names of the variables that placeVariables returns.
var placeNames = []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR", "MCPVISOR_STORE"}

// leadsElsewhere reports whether an entry leads to other places than these variables do.
func leadsElsewhere(spec messages.Spec, env map[string]string) bool {
	return slices.ContainsFunc(placeNames, func(name string) bool { return spec.Env[name] != env[name] })
}

// connectArgs returns the words by which an agent gets what the flags choose; more is false if they choose nothing.
func (f changeFlags) connectArgs() (args []string, more bool, err error) {
	args = []string{"connect"}
	if f.project != "" {
		dir, err := filepath.Abs(f.project)
		if err != nil {
			return nil, false, exit.With(exit.Usage, "--project: the working directory is not known; change to another one")
		}
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			return nil, false, exit.With(exit.Usage, fmt.Sprintf("--project: %s is no directory", messages.Line(dir, 0)))
		}
		args = append(args, "--project", dir)
	}
	if f.view != "" {
		args = append(args, "--view", f.view)
	}
	return args, len(args) > 1, nil
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
