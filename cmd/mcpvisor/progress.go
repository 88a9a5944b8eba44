package main

import (
	"fmt"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// progress shows on standard error how far a call has got: a line that is rewritten on a terminal, lines elsewhere.
type progress struct {
	*options
	mu    sync.Mutex
	shown bool // a line stands there that will be rewritten
}

func (p *project) defaultHooks() control.CallHooks {
	a := control.CallHooks{}
	if p.up != nil && p.prompter != nil && (p.prompter.hasTerminal() || p.prompter.answers != nil) {
		a.Ask = p.prompter.answerElicitation // a manager of our own asks by itself
	}
	if p.up != nil && p.prompter != nil && (p.prompter.hasTerminal() || len(p.prompter.allowed) > 0) {
		p.prompter.outlivesCall = true
		a.Permit = p.prompter.permitCall
	}
	return a
}

func (g *progress) showProgress(p messages.Progress) {
	text := progressText(p)
	g.mu.Lock()
	defer g.mu.Unlock()
	if !isTerminal(g.err) {
		fmt.Fprintln(g.err, "mcpvisor: "+text)
		return
	}
	if columns := columnsOf(g.err); columns > 4 {
		text = messages.Line(text, columns-1)
	}
	fmt.Fprint(g.err, "\r\x1b[2K"+text)
	g.shown = true
}

// clear takes the line away.
func (g *progress) clear() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shown {
		fmt.Fprint(g.err, "\r\x1b[2K")
		g.shown = false
	}
}

// withTerminal lets a question have the terminal: reports wait meanwhile.
func (g *progress) withTerminal(f func()) {
	g.clear()
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

// progressText is a report in a few words: "3 of 10 (30 %): indexing".
func progressText(p messages.Progress) string {
	var b strings.Builder
	b.WriteString(formatNumber(p.Progress))
	if p.Total > 0 {
		fmt.Fprintf(&b, " of %s (%.0f %%)", formatNumber(p.Total), 100*p.Progress/p.Total)
	}
	if text := messages.Line(p.Message, 200); text != "" {
		b.WriteString(": " + text)
	}
	return b.String()
}

func formatNumber(f float64) string { return strings.TrimSuffix(fmt.Sprintf("%.2f", f), ".00") }
