package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/isolation"
)

// isolationKeys holds the keys of isolation in the order in which they are documented.
var isolationKeys = []string{"privateTemp", "noNewPrivileges", "readOnly", "write", "read", "network", "memory", "fileSize",
	"files", "cpuTime", "ownSandbox", "bestEffort"}

// notIsolated maps keys that other sandboxes have to the advice what to write here.
var notIsolated = map[string]string{
	// A limit of this kind in another sandbox suggests one here.
	"processes": "the system counts the processes of a user, not of a server; there is no such limit here",
	// The lists here name what is allowed, and not what is denied.
	"hide":      `write "read": [ … ] with what it may read instead`,
	"denyRead":  `write "read": [ … ] with what it may read instead`,
	"denyWrite": `write "write": [ … ] with what it may write instead`,
	// Restrictions that cannot be enforced always keep the server from starting.
	"strict":   `it is always so; "bestEffort": true is the opposite`,
	"required": `it is always so; "bestEffort": true is the opposite`,
	"cpu":      `write "cpuTime": "10m"`,
}

// isolationForm is the fix for a value of the wrong type.
const isolationForm = `write true, or {"write": ["./data"], "network": false}`

// readIsolation reads true, false, or an object. An object begins with messages.DefaultIsolation, the meaning of true, and
// changes single wishes, so that naming one of them never loses another.
func readIsolation(r *reader, e *Entry, v value) {
	switch v.Value.Value.Kind() {
	case 't':
		e.Spec.Isolation = messages.DefaultIsolation()
		return
	case 'f':
		e.Spec.Isolation = nil
		return
	case '{':
	default:
		r.reportType(v, "true, false or an object", isolationForm)
		return
	}
	i := messages.DefaultIsolation()
	// readOnly is no field of the spec: it stands for an empty list of what may be written.
	var readOnly *bool
	r.readObject(v, isolationForm, func(key string, at Pos, m value) {
		if isNull(m) || isRemark(key) {
			return
		}
		switch key {
		case "privateTemp":
			r.readBool(m, &i.PrivateTemp)
		case "noNewPrivileges":
			r.readBool(m, &i.NoNewPrivileges)
		// The key is kept apart until the whole object is read, because write may stand behind it.
		case "readOnly":
			var b bool
			if r.readBool(m, &b) {
				readOnly = &b
			}
		case "write":
			r.readPaths(m, &i.Write)
		case "read":
			r.readPaths(m, &i.Read)
		case "network":
			r.readNetwork(m, &i.Network)
		case "memory":
			r.readSize(m, &i.Memory)
		case "fileSize":
			r.readSize(m, &i.FileSize)
		case "files":
			r.readWhole(m, "a number of files", func(n int64) { i.Files = int(min(n, maxBound)) })
		case "cpuTime":
			r.readDuration(m, &i.CPUTime)
		case "ownSandbox":
			r.readBool(m, &i.OwnSandbox)
		case "bestEffort":
			r.readBool(m, &i.BestEffort)
		default:
			// An unknown key is a problem and no warning: its author believes that a protection is in force.
			fix := notIsolated[key]
			if near := nearestKey(key, isolationKeys); fix == "" && near != "" {
				fix = "did you mean " + near + "?"
			}
			r.addProblem(at, m.key, "unknown key", fix)
		}
	})
	// A list of what may be written already makes all other files read-only.
	switch {
	case readOnly == nil:
	// An empty list allows no path to be written.
	case *readOnly && i.Write == nil:
		i.Write = []string{}
	case !*readOnly && i.Write != nil:
		r.addProblem(e.posOf("isolation.readOnly"), "isolation.readOnly", "a list of what may be written makes it read-only",
			"remove one")
	}
	// Faults that no variable can repair are reported now, with their places in the file.
	for _, f := range isolation.Check(withoutVariables(i)) {
		r.addProblem(e.posOf("isolation."+f.Key), "isolation."+f.Key, f.Text, f.Fix)
	}
	// Many programs fail without a place for temporary files.
	if i.Write != nil && !i.PrivateTemp {
		r.addWarning(e.posOf("isolation.privateTemp"), "isolation.privateTemp",
			"without it a read-only server has nowhere to write temporary files, and many fail", "remove it, or list a folder")
	}
	// The key only widens restrictions, and there are none.
	if i.OwnSandbox && i.Write == nil && i.Read == nil && i.Network == "" {
		r.addWarning(e.posOf("isolation.ownSandbox"), "isolation.ownSandbox",
			"it gives back what write, read and network take away, and none of them is there", "remove it")
	}
	e.Spec.Isolation = i
}

// withoutVariables returns a copy of i in which "." stands for each path with a variable. checkIsolation checks those paths
// when the variables are expanded.
func withoutVariables(i *messages.Isolation) *messages.Isolation {
	own := *i
	for _, l := range []*[]string{&own.Write, &own.Read} {
		paths := slices.Clone(*l)
		for n, path := range paths {
			// The path "." passes every check of the form, so that only the variable's path is left out.
			if strings.Contains(path, "${") {
				paths[n] = "."
			}
		}
		*l = paths
	}
	return &own
}

// readPaths reads a list of paths. An empty list is kept and means that no path is allowed.
func (r *reader) readPaths(v value, into *[]string) {
	if l, ok := r.readList(v, `write ["./data"], or [] for none`, r.readText); ok {
		*into = l
	}
}

// readNetwork reads true for the whole network, false for none, or a word for something between.
func (r *reader) readNetwork(v value, into *string) {
	const fix = `write false for none, or "loopback"`
	l, ok := literalOf(v.Value)
	switch {
	// The empty word in a spec means the whole network.
	case ok && l.Kind() == 't':
		*into = ""
	case ok && l.Kind() == 'f':
		*into = messages.NetworkNone
	case !ok || l.Kind() != '"':
		r.reportType(v, "true, false or a word", fix)
	case l.String() == messages.NetworkNone || l.String() == messages.NetworkLoopback:
		*into = l.String()
	default:
		r.addProblem(r.posOf(v.Value), v.key, "unknown value "+quoteShort(messages.Line(l.String(), 40)), fix)
	}
}

// readSize reads a number of bytes, or text with a unit ("512MiB").
func (r *reader) readSize(v value, into *messages.Size) {
	const fix = `write "512MiB", or a number of bytes`
	l, ok := literalOf(v.Value)
	if !ok || l.Kind() != '"' && l.Kind() != '0' {
		r.reportType(v, "a size", fix)
		return
	}
	// A bare number is its own text, and ParseSize reads both forms.
	text := l.String()
	s, err := messages.ParseSize(text)
	if err != nil {
		r.addProblem(r.posOf(v.Value), v.key, messages.Line(err.Error(), 200), fix)
		return
	}
	*into = s
}

// expandIsolation expands the variables of paths in a copy, because the entry keeps what was written.
func (r *resolver) expandIsolation(s *messages.Spec) {
	if s.Isolation == nil {
		return
	}
	i := *s.Isolation
	s.Isolation = &i
	// Only the paths may contain variables; the other fields are numbers, words and truth values.
	for _, l := range []struct {
		key   string
		paths *[]string
	}{{"write", &i.Write}, {"read", &i.Read}} {
		if *l.paths == nil {
			continue
		}
		// A list that is empty must not become nil, which means that nothing is restricted.
		own := append([]string{}, *l.paths...)
		for n := range own {
			r.expandField(fmt.Sprintf("isolation.%s[%d]", l.key, n), &own[n])
		}
		*l.paths = own
	}
}

// checkIsolation checks the expanded paths, and whether this machine can enforce what is asked for. An entry that asks for more
// is invalid unless it has bestEffort, which turns the missing parts into warnings.
func (r *resolver) checkIsolation(s *messages.Spec) {
	for _, f := range isolation.Check(s.Isolation) {
		r.addProblem("isolation."+f.Key, f.Text, f.Fix)
	}
	// Without Machine the caller only looks at the configuration, perhaps for another machine; the launcher checks again at
	// each start.
	if !s.Isolation.Asks() || r.ctx.Machine == nil || len(r.problems) > 0 {
		return
	}
	steps, err := isolation.Plan(s.Isolation, r.ctx.Machine(*s.Isolation))
	var no *isolation.UnsupportedError
	// The message names the part that this machine lacks.
	if errors.As(err, &no) {
		key := "isolation." + no.Key
		// DefaultIsolation may have asked for it, in which case no key of that name has a place.
		if _, written := r.entry.positions[key]; !written {
			key = "isolation"
		}
		r.addProblem(key, "it cannot be enforced on this machine: "+no.Reason, no.Fix())
	}
	// bestEffort lets the server start; the person still has to know what is missing.
	for _, missing := range steps.Waived {
		r.addWarning("isolation", "on this machine the server runs without "+missing, "")
	}
}
