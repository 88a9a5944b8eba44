package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/isolation"
)

// isolationKeys are the keys of isolation, in the order in which they are documented.
var isolationKeys = []string{"privateTemp", "noNewPrivileges", "readOnly", "write", "read", "network", "memory", "fileSize",
	"files", "cpuTime", "ownSandbox", "bestEffort"}

// notIsolated holds keys that a person might expect here, each with what to do instead.
var notIsolated = map[string]string{
	"processes": "the system counts the processes of a user, not of a server; there is no such limit here",
	"hide":      `write "read": [ … ] with what it may read instead`,
	"denyRead":  `write "read": [ … ] with what it may read instead`,
	"denyWrite": `write "write": [ … ] with what it may write instead`,
	"strict":    `it is always so; "bestEffort": true is the opposite`,
	"required":  `it is always so; "bestEffort": true is the opposite`,
	"cpu":       `write "cpuTime": "10m"`,
}

const isolationForm = `write true, or {"write": ["./data"], "network": false}`

// readIsolation reads true, false, or an object with what is wanted. In an object, what true asks for is asked for unless it
// says otherwise: more is added to it, nothing is lost by naming something.
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
		r.expected(v, "true, false or an object", isolationForm)
		return
	}
	i := messages.DefaultIsolation()
	var readOnly *bool
	r.object(v, isolationForm, func(key string, at Pos, m value) {
		if isNull(m) || isRemark(key) {
			return
		}
		switch key {
		case "privateTemp":
			r.truth(m, &i.PrivateTemp)
		case "noNewPrivileges":
			r.truth(m, &i.NoNewPrivileges)
		case "readOnly":
			var b bool
			if r.truth(m, &b) {
				readOnly = &b
			}
		case "write":
			r.paths(m, &i.Write)
		case "read":
			r.paths(m, &i.Read)
		case "network":
			r.network(m, &i.Network)
		case "memory":
			r.size(m, &i.Memory)
		case "fileSize":
			r.size(m, &i.FileSize)
		case "files":
			r.whole(m, "a number of files", func(n int64) { i.Files = int(min(n, maxBound)) })
		case "cpuTime":
			r.duration(m, &i.CPUTime)
		case "ownSandbox":
			r.truth(m, &i.OwnSandbox)
		case "bestEffort":
			r.truth(m, &i.BestEffort)
		default:
			// It is a fault and no warning: a wish that is not understood must not be taken for one that is met.
			fix := notIsolated[key]
			if near := nearest(key, isolationKeys); fix == "" && near != "" {
				fix = "did you mean " + near + "?"
			}
			r.report(at, m.key, "unknown key", fix)
		}
	})
	switch {
	case readOnly == nil:
	case *readOnly && i.Write == nil:
		i.Write = []string{}
	case !*readOnly && i.Write != nil:
		r.report(e.place("isolation.readOnly"), "isolation.readOnly", "a list of what may be written makes it read-only",
			"remove one")
	}
	for _, f := range isolation.Check(unexpanded(i)) {
		r.report(e.place("isolation."+f.Key), "isolation."+f.Key, f.Text, f.Fix)
	}
	if i.Write != nil && !i.PrivateTemp {
		r.warn(e.place("isolation.privateTemp"), "isolation.privateTemp",
			"without it a read-only server has nowhere to write temporary files, and many fail", "remove it, or list a folder")
	}
	if i.OwnSandbox && i.Write == nil && i.Read == nil && i.Network == "" {
		r.warn(e.place("isolation.ownSandbox"), "isolation.ownSandbox",
			"it gives back what write, read and network take away, and none of them is there", "remove it")
	}
	e.Spec.Isolation = i
}

// unexpanded is i without the paths that hold variables: what they are is checked when these are known.
func unexpanded(i *messages.Isolation) *messages.Isolation {
	own := *i
	for _, l := range []*[]string{&own.Write, &own.Read} {
		paths := slices.Clone(*l)
		for n, path := range paths {
			if strings.Contains(path, "${") {
				paths[n] = "."
			}
		}
		*l = paths
	}
	return &own
}

func (r *reader) paths(v value, into *[]string) {
	if l, ok := r.list(v, `write ["./data"], or [] for none`, r.text); ok {
		*into = l
	}
}

// network reads false for none, true for everything, or the word for something between.
func (r *reader) network(v value, into *string) {
	const fix = `write false for none, or "loopback"`
	l, ok := literal(v.Value)
	switch {
	case ok && l.Kind() == 't':
		*into = ""
	case ok && l.Kind() == 'f':
		*into = messages.NetworkNone
	case !ok || l.Kind() != '"':
		r.expected(v, "true, false or a word", fix)
	case l.String() == messages.NetworkNone || l.String() == messages.NetworkLoopback:
		*into = l.String()
	default:
		r.report(r.pos(v.Value), v.key, "unknown value "+quote(messages.Line(l.String(), 40)), fix)
	}
}

// size reads a number of bytes, or text with a unit.
func (r *reader) size(v value, into *messages.Size) {
	const fix = `write "512MiB", or a number of bytes`
	l, ok := literal(v.Value)
	if !ok || l.Kind() != '"' && l.Kind() != '0' {
		r.expected(v, "a size", fix)
		return
	}
	text := l.String()
	s, err := messages.ParseSize(text)
	if err != nil {
		r.report(r.pos(v.Value), v.key, messages.Line(err.Error(), 200), fix)
		return
	}
	*into = s
}

// expandIsolation expands the variables of paths.
func (r *resolver) expandIsolation(s *messages.Spec) {
	if s.Isolation == nil {
		return
	}
	i := *s.Isolation
	s.Isolation = &i
	for _, l := range []struct {
		key   string
		paths *[]string
	}{{"write", &i.Write}, {"read", &i.Read}} {
		if *l.paths == nil {
			continue
		}
		own := append([]string{}, *l.paths...)
		for n := range own {
			r.expand(fmt.Sprintf("isolation.%s[%d]", l.key, n), &own[n])
		}
		*l.paths = own
	}
}

// checkIsolation looks at the expanded paths, and at what the machine can do.
func (r *resolver) checkIsolation(s *messages.Spec) {
	for _, f := range isolation.Check(s.Isolation) {
		r.report("isolation."+f.Key, f.Text, f.Fix)
	}
	if !s.Isolation.Asks() || r.ctx.Machine == nil || len(r.problems) > 0 {
		return
	}
	steps, err := isolation.Plan(s.Isolation, r.ctx.Machine(*s.Isolation))
	var no *isolation.Unsupported
	if errors.As(err, &no) {
		key := "isolation." + no.Key
		if _, written := r.entry.at[key]; !written {
			key = "isolation"
		}
		r.report(key, "it cannot be enforced on this machine: "+no.Reason, no.Fix())
	}
	for _, missing := range steps.Waived {
		r.warn("isolation", "on this machine the server runs without "+missing, "")
	}
}
