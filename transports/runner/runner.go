// Package runner knows the programs that download what they run: npx, uvx, docker run and their like. Their first start takes as
// long as an installation, and an installation that is cut short can leave a cache that no later start repairs.
//
//	name := runner.NameOf("npx", []string{"-y", "@modelcontextprotocol/server-filesystem", "."}) // "npx"
//	runner.FetchesImage(name, stderr) // true while a daemon downloads the image
//
// # How it fits
//
// Package supervisor/internal/opener calls [NameOf] for each entry and gives a runner more time to start and to end
// (stdio.Config.Fetches). The server's actor bounds an attempt to connect by it, and calls [FetchesImage] when a first
// start takes long, to tell a download from a server that hangs. The package is pure and holds no state.
//
// Every decision is by words: the command of an entry, and what a program wrote to its standard error, which is a stranger's
// text. Nothing is promised for runners that the table does not name, nor for a script that starts one.
//
// Public for the actors: what it exports may change without notice.
package runner

import (
	"path"
	"slices"
	"strings"
)

// NameOf returns the runner that a command begins with, as a person would say it: "npx", "pnpm dlx", "docker run". It is empty
// for every other program. It ignores a path before the name, an ending that Windows adds, and env, cmd /c and a shell's -c in
// front of it.
func NameOf(command string, args []string) string {
	words := append([]string{command}, args...)
	for range 4 { // env in a shell in cmd: no configuration nests deeper by accident
		inner, wrapped := unwrapCommand(words)
		if !wrapped {
			break
		}
		words = inner
	}
	if len(words) == 0 {
		return ""
	}
	name := programName(words[0])
	verbs, known := runnerVerbs[name]
	if !known {
		return ""
	}
	if verbs == nil {
		return name
	}
	rest := leadingWords(words[1:])
	for _, verb := range verbs {
		if want := strings.Fields(verb); len(rest) >= len(want) && slices.Equal(rest[:len(want)], want) {
			return name + " " + verb
		}
	}
	return ""
}

// runnerVerbs names the runners, and the words after the name that make it one; nil where the name suffices. "npm install" and
// "docker ps" run nothing, and so are not in it.
var runnerVerbs = map[string][]string{
	"npx": nil, "pnpx": nil, "bunx": nil, "uvx": nil, "dnx": nil,
	"npm":     {"exec", "x", "init", "create"},
	"pnpm":    {"dlx", "create"},
	"yarn":    {"dlx", "create"},
	"bun":     {"x", "create"},
	"uv":      {"tool run", "run", "x"},
	"pipx":    {"run"},
	"hatch":   {"run"},
	"poetry":  {"run"},
	"docker":  {"run", "container run", "compose run", "compose up"},
	"podman":  {"run", "container run"},
	"nerdctl": {"run", "container run"},
	"go":      {"run"},
	"deno":    {"run"},
	"cargo":   {"run"},
	"dotnet":  {"run", "tool exec"},
	"jbang":   nil,
	"nix":     {"run", "shell"},
}

// unwrapCommand removes one program that only starts another one: env, cmd /c, or a shell with -c. wrapped is false if there is
// none.
func unwrapCommand(words []string) (inner []string, wrapped bool) {
	if len(words) < 2 {
		return words, false
	}
	switch rest := words[1:]; programName(words[0]) {
	case "env":
		i := slices.IndexFunc(rest, func(w string) bool { return !strings.Contains(w, "=") && !strings.HasPrefix(w, "-") })
		if i < 0 {
			return words, false
		}
		return rest[i:], true
	case "cmd":
		if strings.EqualFold(rest[0], "/c") {
			return rest[1:], true
		}
	case "sh", "bash", "zsh", "dash", "fish":
		// The script follows an option that ends with c: -c, -lc, -ec.
		i := slices.IndexFunc(rest, func(w string) bool { return !strings.HasPrefix(w, "-") })
		if i <= 0 || !strings.HasSuffix(rest[i-1], "c") {
			return words, false
		}
		script := strings.Fields(rest[i])
		for len(script) > 0 && (script[0] == "exec" || strings.Contains(script[0], "=")) {
			script = script[1:]
		}
		return script, true
	}
	return words, false
}

// leadingWords leaves out the options before the first word, and returns the first two words. An option with a value of its own
// (docker --context remote run) hides the runner.
func leadingWords(words []string) (out []string) {
	for _, w := range words {
		if len(out) == 2 {
			break
		}
		if len(out) > 0 || !strings.HasPrefix(w, "-") {
			out = append(out, w)
		}
	}
	return out
}

// programName returns the name of a program in lower case, without its path and without Windows' endings.
func programName(word string) string {
	name := strings.ToLower(path.Base(strings.ReplaceAll(word, `\`, "/")))
	for _, ending := range []string{".exe", ".cmd", ".bat", ".ps1"} {
		name = strings.TrimSuffix(name, ending)
	}
	return name
}

// FetchesImage reports whether a runner of containers last said that an image is being downloaded. The daemon does that, so that
// the runner's own processes use no processor time meanwhile, and would seem to hang.
func FetchesImage(name, stderr string) bool {
	var began, ended []string
	switch {
	case strings.HasPrefix(name, "docker "), strings.HasPrefix(name, "nerdctl "):
		began, ended = []string{"Unable to find image '"}, []string{"Status: Downloaded newer image", "Status: Image is up to date", "docker: "}
	case strings.HasPrefix(name, "podman "):
		began, ended = []string{"Trying to pull "}, []string{"Writing manifest to image destination", "Error: "}
	default:
		return false
	}
	return lastIndexOf(stderr, began) > lastIndexOf(stderr, ended)
}

// lastIndexOf returns the start of the last occurrence of any of some texts, -1 if there is none.
func lastIndexOf(text string, some []string) int {
	pos := -1
	for _, s := range some {
		pos = max(pos, strings.LastIndex(text, s))
	}
	return pos
}
