package score

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/failure"
	"github.com/mcpvisor/mcpvisor/test/chaos/score/adapter"
)

// Options say which cases are played to which client. Only Adapter is needed.
//
// The servers are this program, started again: its main, or its TestMain, must begin with servers.Main.
type Options struct {
	// Name is the client's name in a table; empty takes the first word of its own description.
	Name string
	// Adapter is the command line of the adapter.
	Adapter []string
	// Only selects cases, see [Choose]; nil selects all.
	Only *regexp.Regexp
	// Parallel is the number of cases played at once; 0 means 2. More is faster, and lets slow clients lose points to a loaded
	// machine. A case that starts sixty servers is always played alone.
	Parallel int
	// Seed, if it is not 0, plays the cases in another order, and up to three of them at the same time in one client, both by the
	// seed: what a server does must harm no other one.
	Seed uint64
	// Progress is called after each case, one call at a time; nil reports nothing.
	Progress func(CaseResult)
}

// ErrNoAdapter is wrapped by the error of [Run] if the adapter cannot be started or does not answer.
var ErrNoAdapter = errors.New("the adapter does not work")

// Run plays the cases to one client. Its error is that of ctx, or wraps [ErrNoAdapter] or [ErrNoCase]. The result of an adapter that does not
// work has no cases and says why in Failed.
func Run(ctx context.Context, o Options) (Result, error) {
	if len(o.Adapter) == 0 {
		return Result{}, fmt.Errorf("%w: it has no command line", ErrNoAdapter)
	}
	chosen, err := Choose(o.Only)
	if err != nil {
		return Result{}, err
	}
	if o.Parallel <= 0 {
		o.Parallel = 2
	}
	if o.Progress == nil {
		o.Progress = func(CaseResult) {}
	}
	dir, err := os.MkdirTemp("", "mcpvisor-score-")
	if err != nil {
		return Result{}, err
	}
	defer os.RemoveAll(dir)
	r := Result{Name: o.Name, Cases: []CaseResult{}}
	if r.About, err = askAbout(ctx, o); err != nil {
		if r.Name == "" {
			r.Name = shorten(strings.Join(o.Adapter, " "))
		}
		r.Failed = err.Error()
		return r, err
	}
	if r.Name == "" {
		r.Name = firstWord(r.About)
	}
	var mu sync.Mutex
	play := func(g []Case) {
		for _, p := range playCases(ctx, o, g, filepath.Join(dir, fmt.Sprintf("case-%d", g[0].Number))) {
			mu.Lock()
			r.Cases = append(r.Cases, p)
			o.Progress(p)
			mu.Unlock()
		}
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, o.Parallel)
	groups := groupCases(chosen, o.Seed)
	// Exclusive cases come last, when no other case runs any more.
	for _, g := range groups {
		if g[0].exclusive || ctx.Err() != nil {
			continue
		}
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			play(g)
		})
	}
	all.Wait()
	for _, g := range groups {
		if g[0].exclusive && ctx.Err() == nil {
			play(g)
		}
	}
	slices.SortFunc(r.Cases, func(a, b CaseResult) int { return a.Number - b.Number })
	return r, ctx.Err()
}

// askAbout asks the client for its name and options. The error quotes the line of the adapter's standard error that explains
// the failure best.
func askAbout(ctx context.Context, o Options) (string, error) {
	words := &lastWords{}
	d, err := startAdapter(ctx, o.Adapter, words)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrNoAdapter, err)
	}
	defer func() {
		if !d.quit(5 * time.Second) {
			d.kill()
		}
	}()
	a := <-d.sendCommand(adapter.Command{Do: "about", TimeoutMs: 5000})
	if !a.OK || a.About == "" {
		err := fmt.Errorf("%w: it does not answer {\"do\":\"about\"}: %s", ErrNoAdapter, a.errorText())
		if said := failure.Explain(words.String()); said.Line != "" {
			err = fmt.Errorf("%w; it wrote: %s", err, shorten(said.Line))
		}
		return "", err
	}
	return shorten(a.About), nil
}

// firstWord returns the text up to the first space or semicolon.
func firstWord(s string) string {
	for i, r := range s {
		if r == ' ' || r == ';' {
			return s[:i]
		}
	}
	return s
}

// caseTime bounds a case. A case comes near it only if everything in it hangs.
const caseTime = 5 * time.Minute
