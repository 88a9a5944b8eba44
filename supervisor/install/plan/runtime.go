package plan

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// option is a flag that a publisher may give to the program that fetches and runs the package. The tables below are an
// allow list: flags that they leave out could run, fetch, mount or reach something else than the package.
type option struct {
	// names holds its spellings, with spaces between them.
	names string
	// value matches its value, which is a word of its own; nil if it takes none. A value of the person is matched both
	// as it is and as personMark, so that a pattern can demand a piece of the person's.
	value func() *regexp.Regexp
	// builtIn marks options that mcpvisor's command line has anyway.
	builtIn bool
	// note becomes a note for the person when the option is used.
	note string
}

// personMark stands for a piece that the person gave. No text of a publisher contains it, because checkSafe refuses
// control characters.
const personMark = "\x00"

// lazyPattern returns a function that compiles the pattern at its first call, because most runs of mcpvisor install
// nothing.
func lazyPattern(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?s:` + pattern + `)$`) })
}

var (
	npmOptions = []option{
		{names: "-y --yes --", builtIn: true},
		{names: "-q --quiet --prefer-offline --prefer-online --offline"},
	}
	pipxOptions = []option{{names: "--", builtIn: true}, {names: "-q --quiet"}}
	dnxOptions  = []option{{names: "-y --yes --", builtIn: true}, {names: "--prerelease"}}

	// imageOptions holds options of docker run and podman run that take rights from the container or stay inside of it,
	// and mounts of places that the person names. --network host, --publish, --device, --env-file and the like are left
	// out.
	imageOptions = []option{
		{names: "--rm -i --interactive --", builtIn: true},
		{names: "--init --read-only"},
		{names: "--pull", value: lazyPattern(`always|missing|never`)},
		{names: "--network --net", value: lazyPattern(`none|bridge`)},
		{names: "--cap-drop", value: lazyPattern(`[A-Za-z_]+`)},
		{names: "--security-opt", value: lazyPattern(`no-new-privileges([:=]true)?`)},
		{names: "--memory -m", value: lazyPattern(`[0-9]+[bkmgBKMG]?`)},
		{names: "--cpus", value: lazyPattern(`[0-9]*\.?[0-9]+`)},
		{names: "--pids-limit --stop-timeout", value: lazyPattern(`[0-9]+`)},
		{names: "--platform", value: lazyPattern(`[a-z0-9]+(/[a-z0-9]+){1,2}`)},
		{names: "--name", value: lazyPattern(`[A-Za-z0-9][A-Za-z0-9_.-]*`)},
		{names: "--user -u", value: lazyPattern(`[A-Za-z0-9_][A-Za-z0-9_.-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?`)},
		{names: "--workdir -w", value: lazyPattern(inContainer)},
		{names: "--entrypoint", value: lazyPattern(`[A-Za-z0-9_./][A-Za-z0-9_./-]*`)},
		{names: "--tmpfs", value: lazyPattern(inContainer + `(:[a-z0-9=,]+)?`)},
		{names: "--env -e", value: lazyPattern(`[A-Za-z_][A-Za-z0-9_]*(=.*)?`)},
		{names: "--volume -v", value: lazyPattern(personMark + `:` + inContainer + `(:ro|:rw)?`), note: mountNote},
		{names: "--mount", value: lazyPattern(`type=bind,(src|source)=` + personMark + `,(dst|target|destination)=` + inContainer + `(,readonly|,ro)?`),
			note: mountNote},
	}
)

// inContainer matches a path inside the container, written by the publisher or the person.
const inContainer = `(/[A-Za-z0-9_./-]*|` + personMark + `)`

// mountNote is the note about a mount.
const mountNote = "the container is given a place of this machine that you named"

// uvOptions returns the options of uvx for a package. --from may only repeat the package, with extras of its own and
// the same version.
func uvOptions(p *Package) []option {
	pin := versionPattern().String()
	if p.Version != "" {
		pin = regexp.QuoteMeta(p.Version)
	}
	pin = strings.TrimSuffix(strings.TrimPrefix(pin, "^"), "$")
	return []option{
		{names: "--", builtIn: true},
		{names: "-q --quiet --no-progress --offline --isolated"},
		{names: "--python -p", value: lazyPattern(`[0-9]+(\.[0-9]+){0,2}`)},
		{names: "--from", value: lazyPattern(regexp.QuoteMeta(p.Identifier) + `(\[[A-Za-z0-9._,-]+\])?((==|@)` + pin + `)?`)},
	}
}

// runtimeOptions returns the publisher's words for the program itself, each option and each value as a word of its own.
// Words in redundant are left out, because the command has them already. A word that the table does not allow is an
// error that names it.
func (f *resolver) runtimeOptions(program string, table []option, list []mixedText, redundant ...string) ([]mixedText, error) {
	var out []mixedText
	for i := 0; i < len(list); i++ {
		w := list[i]
		if slices.Contains(redundant, w.String()) {
			continue
		}
		name, value, joined := cutValue(w)
		o, ok := findOption(table, name)
		switch {
		// A flag without a value may be written --flag=true.
		case !ok, joined && o.value == nil && value.String() != "true":
			return nil, notAllowedError(program, w)
		case o.builtIn:
			continue
		case o.value == nil:
			out = append(out, publishedText(name))
			continue
		// The value is the next word.
		case !joined:
			if i++; i == len(list) {
				return nil, notAllowedError(program, w)
			}
			value = list[i]
		}
		if !o.value().MatchString(value.String()) && !o.value().MatchString(value.markedText()) {
			return nil, notAllowedError(program, append(publishedText(name+" "), value...))
		}
		// A mount gives the container access to files of the person.
		if o.note != "" {
			f.addNote(o.note + ": " + shortText(value.redactedText()))
		}
		out = append(out, publishedText(name), value)
	}
	return out, nil
}

// cutValue splits --flag=value and keeps the marks of the value's pieces. A short flag is not split, because its value
// may contain "=".
func cutValue(w mixedText) (name string, value mixedText, joined bool) {
	text := w.String()
	name, _, joined = strings.Cut(text, "=")
	if !joined || !strings.HasPrefix(name, "--") {
		return text, nil, false
	}
	// The pieces are cut one by one, so that each keeps its origin.
	skip := len(name) + 1
	for _, p := range w {
		n := min(skip, len(p.text))
		skip -= n
		p.text = p.text[n:]
		value = append(value, p)
	}
	return name, value, true
}

// findOption returns the option with a spelling.
func findOption(table []option, name string) (option, bool) {
	i := slices.IndexFunc(table, func(o option) bool { return slices.Contains(strings.Fields(o.names), name) })
	if i < 0 {
		return option{}, false
	}
	return table[i], true
}

// notAllowedError returns the error about a word that the table does not allow, without secrets.
func notAllowedError(program string, w mixedText) error {
	return planError(ErrUnusable, program+" is to be given "+shortText(w.redactedText())+", which is not for a registry to decide",
		"choose another way with --package, or write the command yourself: mcpvisor add NAME "+program+" …")
}
