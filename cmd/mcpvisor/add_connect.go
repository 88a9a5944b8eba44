package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// attempt is what connecting a server once came to.
type attempt struct {
	status messages.Status
	tools  []control.Tool
	took   time.Duration
}

// connect connects the server that was written, asks for credentials if it wants some, and shows what it offers.
func (w *writer) connect(out newcomer) error {
	ctx := w.cmd.Context()
	a, err := w.attempt(ctx, out.Name)
	if err == nil && a.status.Status == messages.NeedsAuth && w.asks() {
		var again bool
		if again, err = w.credentials(ctx, out, a.status); err == nil && again {
			a, err = w.attempt(ctx, out.Name)
		}
	}
	if err != nil {
		w.remark("the server stays in %s; mcpvisor remove %s takes it out", out.File, shellWord(out.Name))
		return err
	}
	connected := callable(a.status)
	out.Connected, out.Status = &connected, a.status.Status
	if connected {
		out.Milliseconds = a.took.Milliseconds()
		for _, t := range a.tools {
			out.Tools = append(out.Tools, addedTool{t.Name, t.Qualified, firstLine(t.Description)})
		}
		w.show(a)
		return w.finish(out)
	}
	e := notConnected(a.status)
	e.Outcome = "" // there was no call
	out.Error = e.Error()
	if err := w.finish(out); err != nil {
		return err
	}
	w.fault(e)
	text := "it stays in " + out.File + "; when that is mended: mcpvisor reconnect " + shellWord(out.Name)
	if a.status.Status == messages.NeedsAuth {
		text = "it stays in " + out.File
	}
	return &exitError{exitFailed, messages.Line(text, 0) + "; to take it out: mcpvisor remove " + shellWord(out.Name)}
}

// attempt connects the server: in the running mcpvisor up if there is one that follows the files, else for a moment here.
func (w *writer) attempt(ctx context.Context, name string) (attempt, error) {
	p, err := w.open(ctx)
	if err != nil {
		return attempt{}, err
	}
	if p.up != nil && !(p.catchUp(ctx) && slices.Contains(p.names, name)) {
		w.remark("the running mcpvisor up does not follow its files; end it and start it again to have the server there")
		p.close()
		alone := *w.options
		alone.noControl = true
		if p, err = alone.open(ctx); err != nil {
			return attempt{}, err
		}
	}
	defer p.close()
	began := time.Now()
	if err := p.start(ctx, []string{name}, nil); err != nil {
		return attempt{}, err
	}
	all, err := p.status(ctx, w.wait, name)
	if err != nil {
		return attempt{}, err
	}
	a := attempt{status: all[0], took: time.Since(began)}
	if callable(a.status) {
		within, cancel := context.WithTimeout(ctx, w.wait)
		defer cancel()
		if a.tools, err = p.Tools(within, name); err != nil {
			return attempt{}, err
		}
	}
	return a, nil
}

// catchUp has the running mcpvisor up read its files now, and reports whether it follows them. What is removed may take a
// moment to be gone.
func (p *project) catchUp(ctx context.Context) bool {
	within, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if _, err := p.client.Reload(within); err != nil {
		return false
	}
	p.look(within)
	return true
}

// look asks the running mcpvisor up which servers it has.
func (p *project) look(ctx context.Context) {
	all, err := p.client.Status(ctx, control.StatusQuery{})
	if err != nil {
		return
	}
	p.names = nil
	for _, st := range all {
		p.names = append(p.names, st.Name)
	}
}

// show prints the tools. What a server says of them is not to be trusted, and no line of it is longer than a line.
func (w *writer) show(a attempt) {
	if w.asJSON {
		return
	}
	text := ""
	if i := a.status.ServerInfo; i != nil {
		text = "  " + strings.TrimSpace(messages.Line(i.Name, 60)+" "+messages.Line(i.Version, 30))
	}
	fmt.Fprintf(w.out, "%s: %s%s in %s · %s\n", messages.Line(a.status.Name, 60),
		paint(w.out, colourOf(a.status.Status), string(a.status.Status)), text, shortly(a.took), count(len(a.tools), "tool"))
	for _, t := range a.tools {
		line := "  • " + messages.Line(t.Qualified, 120)
		if d := firstLine(t.Description); d != "" {
			line += "  " + d
		}
		fmt.Fprintln(w.out, line)
	}
	for _, q := range a.status.Quarantined {
		fmt.Fprintf(w.out, "  · %s  not offered: %s\n", messages.Line(q.Name, 80), messages.Line(q.Reason, 200))
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return messages.Line(strings.TrimSpace(line), 100)
}
