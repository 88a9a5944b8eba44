package serve

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/transports/auth"
	"github.com/mcpvisor/mcpvisor/transports/files"
	"github.com/mcpvisor/mcpvisor/transports/serve"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

const (
	// tokensPeriod is the time between two looks at the files of tokens.
	tokensPeriod = time.Second
	// goneAfter is how long a token counts whose file cannot be read: an editor may be writing it.
	goneAfter = 2 * time.Second
	// shortToken is the length below which a token draws a warning: it might be guessed.
	shortToken = 16
)

// tokenReader keeps the tokens of an endpoint as their files and commands have them.
type tokenReader struct {
	report func(error)
	known  *serve.Tokens
	// own is the token of this run, which stands in no file; empty if the configuration has tokens.
	own          string
	ownPrincipal serve.Principal

	// mu is held while tokens are read.
	mu      sync.Mutex
	gateway *config.Gateway
	read    map[string]*readToken
}

// readToken is one token of the configuration.
type readToken struct {
	from  config.Token
	text  string
	stamp fileStamp
	// failing is since when it cannot be read; zero if it can. problem was reported.
	failing time.Time
	problem string
}

// newTokenReader reads all tokens. The error says that none of them can be read.
func newTokenReader(ctx context.Context, g *config.Gateway, own string, ownPrincipal serve.Principal, report func(error)) (*tokenReader, error) {
	t := &tokenReader{report: report, known: serve.NewTokens(nil), own: own, ownPrincipal: ownPrincipal, read: map[string]*readToken{}}
	t.replaceGateway(ctx, g)
	if own == "" && !slices.ContainsFunc(slices.Collect(maps.Values(t.read)), func(r *readToken) bool { return r.text != "" }) {
		return nil, &messages.Error{Op: "serve", Class: messages.ClassConfig, Text: "no token of " + messages.Line(g.Source, 0) + " can be used",
			Fix: "mend those above"}
	}
	return t, nil
}

// replaceGateway takes another configuration, and reads all of its tokens.
func (t *tokenReader) replaceGateway(ctx context.Context, g *config.Gateway) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gateway = g
	for name, r := range t.read {
		if now, ok := g.Tokens[name]; !ok || now.File != r.from.File || now.FromEnv != r.from.FromEnv || !slices.Equal(now.Command, r.from.Command) {
			delete(t.read, name)
		}
	}
	for name, from := range g.Tokens {
		if t.read[name] == nil {
			t.read[name] = &readToken{}
		}
		t.read[name].from = from
	}
	t.readAll(ctx, true)
}

// followFiles looks at the files of tokens until ctx ends, and reads everything at each value of signalled.
func (t *tokenReader) followFiles(ctx context.Context, signalled <-chan struct{}) {
	look := time.NewTicker(tokensPeriod)
	defer look.Stop()
	for {
		everything := false
		select {
		case <-ctx.Done():
			return
		case <-signalled:
			everything = true
		case <-look.C:
		}
		t.mu.Lock()
		t.readAll(ctx, everything)
		t.mu.Unlock()
	}
}

// readAll reads the tokens whose files have changed, or everything, and puts the outcome in force. The caller holds mu.
func (t *tokenReader) readAll(ctx context.Context, everything bool) {
	changed := everything
	for _, name := range slices.Sorted(maps.Keys(t.read)) {
		r := t.read[name]
		stamp := fileStamp{}
		if r.from.File != "" {
			stamp = stampOf(r.from.File)
		}
		if !everything && stamp == r.stamp && (r.failing.IsZero() || r.text == "") {
			continue
		}
		r.stamp, changed = stamp, true
		t.readOne(ctx, name, r)
	}
	if changed {
		t.known.Set(t.principals())
	}
}

// readOne reads one token. What it said before counts on for a moment when it cannot be read.
func (t *tokenReader) readOne(ctx context.Context, name string, r *readToken) {
	text, err := readSource(ctx, r.from)
	if err == nil {
		if len(text) < shortToken && text != r.text {
			t.report(fmt.Errorf("warning: the token %q has fewer than %d characters, and might be guessed", name, shortToken))
		}
		r.text, r.failing, r.problem = text, time.Time{}, ""
		return
	}
	if r.failing.IsZero() {
		r.failing = time.Now()
	}
	if r.text != "" && time.Since(r.failing) < goneAfter {
		return
	}
	r.text = ""
	if problem := err.Error(); problem != r.problem {
		r.problem = problem
		t.report(fmt.Errorf("the token %q lets nobody in: %w", name, err))
	}
}

// readSource reads a token where it stands. A file that others may read is no secret.
func readSource(ctx context.Context, from config.Token) (string, error) {
	switch {
	case from.File != "":
		if info, err := os.Stat(from.File); err == nil {
			if problem := files.Exposure(info); problem != "" {
				return "", errors.New("the file " + messages.Line(from.File, 0) + " " + problem + "; chmod 600 makes it yours alone")
			}
			if !info.Mode().IsRegular() {
				return "", errors.New(messages.Line(from.File, 0) + " is no file")
			}
		}
		return auth.File(from.File).Value(ctx)
	case from.FromEnv != "":
		return auth.Env(from.FromEnv).Value(ctx)
	}
	return auth.Command(stdio.Config{Command: from.Command[0], Args: from.Command[1:], Env: os.Environ()}, 0).Value(ctx)
}

// principals returns who comes in by which text. Of a text that two tokens have it is not known whose it is, so it lets nobody in. The
// caller holds mu.
func (t *tokenReader) principals() map[string]serve.Principal {
	all, names := map[string]serve.Principal{}, map[[32]byte]string{}
	if t.own != "" {
		all[t.own] = t.ownPrincipal
	}
	for _, name := range slices.Sorted(maps.Keys(t.read)) {
		r := t.read[name]
		if r.text == "" {
			continue
		}
		sum := sha256.Sum256([]byte(r.text))
		if other, twice := names[sum]; twice {
			delete(all, r.text)
			t.report(fmt.Errorf("the tokens %q and %q are the same, and let nobody in", other, name))
			continue
		}
		names[sum] = name
		bounds := t.gateway.Principals[r.from.Principal]
		all[r.text] = serve.Principal{Name: r.from.Principal, View: r.from.View, MaxSessions: bounds.MaxSessions, MaxRequests: bounds.MaxRequests}
	}
	return all
}
