package config

import (
	"path/filepath"
	"slices"
	"strings"
)

// evalFlags lists, by the base name of a program, the arguments that make it run code from the argument itself, load further
// code, or reach more of the machine than the rest of the command line shows.
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

// aliases maps programs to the one of evalFlags whose arguments they understand.
var aliases = map[string]string{"nodejs": "node", "tsx": "node", "ts-node": "node", "bunx": "bun", "pnpm": "npm", "pnpx": "npx", "yarn": "npm",
	"uv": "uvx", "pipx": "uvx", "podman": "docker", "nerdctl": "docker"}

// lineShells lists the shells, which run the text that follows -c, /c, /k or -Command.
var lineShells = []string{"sh", "bash", "zsh", "dash", "ksh", "fish", "ash", "csh", "tcsh", "cmd", "powershell", "pwsh", "busybox"}

// argumentEffect describes for the person who approves an entry what an argument makes the command do beyond what its name
// shows; it is empty for most arguments. The words before the argument count as possible programs as well, because env, sudo
// and npx start another command that their arguments name.
func argumentEffect(command string, before []string, arg string) string {
	flag, _, _ := strings.Cut(arg, "=")
	for i, word := range slices.Concat([]string{command}, before) {
		// A flag of an earlier word cannot be the program that reads this argument.
		if i > 0 && strings.HasPrefix(word, "-") {
			continue
		}
		name := strings.TrimSuffix(strings.ToLower(filepath.Base(strings.ReplaceAll(word, `\`, "/"))), ".exe")
		if slices.Contains(lineShells, name) {
			lower := strings.ToLower(arg)
			// Shells join short flags, so -lc has the effect of -c. PowerShell takes any prefix of -EncodedCommand.
			if strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.Contains(arg, "c") || lower == "/c" || lower == "/k" ||
				strings.HasPrefix(lower, "-enc") || strings.HasPrefix(lower, "-command") {
				return "runs a line of a shell, the argument after " + Visible(arg)
			}
			continue
		}
		if to, ok := aliases[name]; ok {
			name = to
		}
		// Versions belong to the name of many programs: python3.12, node22, ruby3.
		name = strings.TrimRight(name, "0123456789.")
		for _, f := range evalFlags[name] {
			// A flag of one letter may have its value attached to it (-I/path), a long one after "=".
			if flag == f || len(f) == 2 && f[0] == '-' && strings.HasPrefix(arg, f) && !strings.HasPrefix(arg, "--") {
				return "has " + Visible(name) + " run or reach more than it names, by " + Visible(arg)
			}
		}
	}
	return ""
}
