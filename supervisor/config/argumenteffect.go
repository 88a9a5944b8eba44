package config

import (
	"path/filepath"
	"slices"
	"strings"
)

// evalFlags are the arguments with which programs run code that stands in an argument, or load more of it, by the program's name.
var evalFlags = map[string][]string{
	"node":   {"-e", "--eval", "-p", "--print", "-r", "--require", "--import", "--loader", "--experimental-loader", "--env-file"},
	"bun":    {"-e", "--eval", "-p", "--print", "-r", "--preload", "--require", "--env-file"},
	"deno":   {"eval", "--preload", "--import", "-A", "--allow-all", "--env-file"},
	"python": {"-c"},
	"perl":   {"-e", "-E", "-M", "-I"},
	"ruby":   {"-e", "-r", "-I"},
	"php":    {"-r", "-d"},
	"git":    {"-c", "--exec-path"},
	"ssh":    {"-o", "-F"},
	"npx":    {"-c", "--call", "--registry", "--node-options", "--script-shell", "--userconfig"},
	"npm":    {"-c", "--call", "--registry", "--script-shell", "--userconfig"},
	"uvx":    {"--index", "--index-url", "--extra-index-url", "--default-index", "--from", "--with", "--env-file"},
	"docker": {"-v", "--volume", "--mount", "--privileged", "--device", "--pid", "--network", "--net", "--env-file", "--security-opt", "--cap-add",
		"--entrypoint"},
}

var aliases = map[string]string{"nodejs": "node", "tsx": "node", "ts-node": "node", "bunx": "bun", "pnpm": "npm", "pnpx": "npx", "yarn": "npm",
	"uv": "uvx", "pipx": "uvx", "podman": "docker", "nerdctl": "docker"}

// lineShells run the text after -c.
var lineShells = []string{"sh", "bash", "zsh", "dash", "ksh", "fish", "ash", "csh", "tcsh", "cmd", "powershell", "pwsh", "busybox"}

// argumentEffect says what an argument of a command has it do beside what its name says; empty for most. The words before it may be a command
// that is started by another: env, sudo, npx.
func argumentEffect(command string, before []string, arg string) string {
	flag, _, _ := strings.Cut(arg, "=")
	for i, word := range slices.Concat([]string{command}, before) {
		if i > 0 && strings.HasPrefix(word, "-") {
			continue
		}
		name := strings.TrimSuffix(strings.ToLower(filepath.Base(strings.ReplaceAll(word, `\`, "/"))), ".exe")
		if slices.Contains(lineShells, name) {
			lower := strings.ToLower(arg)
			if strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.Contains(arg, "c") || lower == "/c" || lower == "/k" ||
				strings.HasPrefix(lower, "-enc") || strings.HasPrefix(lower, "-command") {
				return "runs a line of a shell, the argument after " + Visible(arg)
			}
			continue
		}
		if to, ok := aliases[name]; ok {
			name = to
		}
		name = strings.TrimRight(name, "0123456789.")
		for _, f := range evalFlags[name] {
			if flag == f || len(f) == 2 && f[0] == '-' && strings.HasPrefix(arg, f) && !strings.HasPrefix(arg, "--") {
				return "has " + Visible(name) + " run or reach more than it names, by " + Visible(arg)
			}
		}
	}
	return ""
}
