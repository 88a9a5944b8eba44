package config

import (
	"regexp"
	"strings"
	"sync"
)

// warnCommandLine warns about paths that only a shell would expand, and about a whole command line in command. The latter is
// the commonest mistake, and its symptom (a program of that name is not found) hides the cause.
func (r *reader) warnCommandLine(e *Entry) {
	program, rest, spaces := strings.Cut(e.Spec.Command, " ")
	// The command itself comes first, then its arguments; one warning is enough.
	for i, word := range append([]string{e.Spec.Command}, e.Spec.Args...) {
		key := "command"
		if i > 0 {
			key = e.argumentKey(i - 1)
		}
		// Arguments of a shell are left alone, because that shell expands them.
		if m := shellWord().FindString(word); m != "" && (i == 0 || !shells[programName(e.Spec.Command)]) {
			r.addWarning(e.posOf(key), key, "no shell reads it, so "+strings.TrimRight(m, `/\`)+" stays as it stands", homeFix(m, r.program))
			break
		}
	}
	// A path with a slash may contain spaces legitimately: "/Program Files/x".
	if spaces && len(e.Spec.Args) == 0 && strings.TrimSpace(rest) != "" && !strings.ContainsAny(program, `/\$`) {
		r.addWarning(e.posOf("command"), "command", "the spaces are taken as part of the program's name",
			`put the rest into args: ["…", "…"]`)
	}
}

// shellWord matches the beginning of a path that only a shell would replace: ~/ or $NAME/.
var shellWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(~|\$[A-Za-z_][A-Za-z0-9_]*)[/\\]`) })

// shells holds the programs that read their arguments as a shell does, on this machine or on another one.
var shells = map[string]bool{"sh": true, "bash": true, "zsh": true, "dash": true, "ksh": true, "fish": true, "ssh": true, "wsl": true,
	"cmd": true, "powershell": true, "pwsh": true, "nix-shell": true}

// programName returns the base name of a command in lower case and without .exe.
func programName(command string) string {
	name := command[strings.LastIndexAny(command, `/\`)+1:]
	return strings.TrimSuffix(strings.ToLower(name), ".exe")
}

// homeFix proposes the form that mcpvisor expands in the place of a shell's. For a file of another program it proposes the
// whole path, because that program may not know ${NAME}.
func homeFix(word, program string) string {
	name := strings.Trim(word, `~$/\`)
	switch {
	case program != "":
		return "write the whole path"
	case name == "":
		return "write ${HOME}/…"
	}
	return "write ${" + name + "}/…"
}
