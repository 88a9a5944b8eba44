package config

import (
	"path/filepath"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

// tlsKeys lists the keys of tls, whether each names a file, and the field that it sets.
var tlsKeys = []struct {
	key     string
	file    bool
	fieldOf func(*messages.TLS) *string
}{
	{"caFile", true, func(t *messages.TLS) *string { return &t.CAFile }},
	{"certFile", true, func(t *messages.TLS) *string { return &t.CertFile }},
	{"keyFile", true, func(t *messages.TLS) *string { return &t.KeyFile }},
	{"serverName", false, func(t *messages.TLS) *string { return &t.ServerName }},
}

// readTLS reads {caFile, certFile, keyFile, serverName}. A certificate and its private key need each other.
func readTLS(r *reader, e *Entry, v value) {
	var t messages.TLS
	// The names serve as candidates for a suggestion, too.
	var names []string
	for _, k := range tlsKeys {
		names = append(names, k.key)
	}
	if !r.readObject(v, `write {"caFile": "ca.pem"}`, func(key string, at Pos, m value) {
		i := slices.Index(names, key)
		switch {
		case isNull(m):
		// An unknown key may be a misspelt one, and a suggestion follows.
		case i < 0:
			r.warnUnknown(m.key, key, at, names)
		// An empty name of a file would silently mean the default.
		case r.readText(m, tlsKeys[i].fieldOf(&t)) && *tlsKeys[i].fieldOf(&t) == "":
			r.addProblem(r.posOf(m.Value), m.key, "it is empty", "remove it, or write its value")
		}
	}) {
		return
	}
	switch {
	case t.CertFile != "" && t.KeyFile == "":
		r.addProblem(e.posOf("tls.certFile"), "tls.certFile", "a certificate needs its private key", `add "keyFile": "key.pem"`)
	case t.KeyFile != "" && t.CertFile == "":
		r.addProblem(e.posOf("tls.keyFile"), "tls.keyFile", "a private key needs its certificate", `add "certFile": "cert.pem"`)
	}
	e.Spec.TLS = &t
}

// expandTLS expands variables in a copy, because the entry keeps what was written. In an entry that was merely found, a
// relative file begins at the project's directory, as cwd does.
func (r *resolver) expandTLS(s *messages.Spec) {
	if s.TLS == nil {
		return
	}
	t := *s.TLS
	s.TLS = &t
	// The authors of such files cannot know where mcpvisor is started.
	found := s.Scope == messages.ScopeProject || s.Scope == messages.ScopeLocal
	for _, k := range tlsKeys {
		v := k.fieldOf(&t)
		r.expandField("tls."+k.key, v)
		if k.file && found && *v != "" && r.ctx.ProjectDir != "" && !filepath.IsAbs(*v) {
			*v = filepath.Join(r.ctx.ProjectDir, *v)
		}
	}
}

// checkTLS checks the expanded values. It does not open the files, which are read anew at each attempt to connect.
// plain means that the URL has no TLS.
func (r *resolver) checkTLS(s *messages.Spec, plain bool) {
	if s.TLS == nil {
		return
	}
	for _, k := range tlsKeys {
		key := "tls." + k.key
		v := *k.fieldOf(s.TLS)
		// An empty result must not fall back to the system's authorities unnoticed.
		if _, written := r.entry.positions[key]; written && v == "" && *k.fieldOf(r.entry.Spec.TLS) != "" {
			r.addProblem(key, "it is empty after expansion", "set the variable")
		}
		r.checkNUL(key, v)
	}
	if plain {
		r.addWarning("tls", "it has no effect on a URL without TLS", "use https or wss in the URL")
	}
}
