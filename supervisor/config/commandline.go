package config

import (
	"regexp"
	"strings"
	"sync"
)

// warnCommandLine warns about a whole command line in command: the commonest mistake, and its symptom (a program of that
// name is not found) hides the cause.
func (r *reader) warnCommandLine(e *Entry) {
	program, rest, spaces := strings.Cut(e.Spec.Command, " ")
	for i, word := range append([]string{e.Spec.Command}, e.Spec.Args...) {
		key := "command"
		if i > 0 {
			key = e.argumentKey(i - 1)
		}
		if m := shellWord().FindString(word); m != "" && (i == 0 || !shells[programName(e.Spec.Command)]) {
			r.addWarning(e.posOf(key), key, "no shell reads it, so "+strings.TrimRight(m, `/\`)+" stays as it stands", homeFix(m, r.program))
			break
		}
	}
	if spaces && len(e.Spec.Args) == 0 && strings.TrimSpace(rest) != "" && !strings.ContainsAny(program, `/\$`) {
		r.addWarning(e.posOf("command"), "command", "the spaces are taken as part of the program's name",
			`put the rest into args: ["…", "…"]`)
	}
}

// shellWord is the beginning of a path that only a shell would replace.
var shellWord = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(~|\$[A-Za-z_][A-Za-z0-9_]*)[/\\]`) })

// shells are programs that read their arguments as a shell does, here or on another machine.
var shells = map[string]bool{"sh": true, "bash": true, "zsh": true, "dash": true, "ksh": true, "fish": true, "ssh": true, "wsl": true,
	"cmd": true, "powershell": true, "pwsh": true, "nix-shell": true}

func programName(command string) string {
	name := command[strings.LastIndexAny(command, `/\`)+1:]
	return strings.TrimSuffix(strings.ToLower(name), ".exe")
}

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
