package manage

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/status"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// connectResult is the outcome of connecting a server once: its last status, its tools if it is callable, and the time it took.
type connectResult struct {
	status messages.Status
	tools  []control.Tool
	took   time.Duration
}

// connectAdded connects the server that was written, asks for credentials if the server needs them, and prints what it offers.
// The entry stays in the file even if connecting fails; the error says how to remove it.
func (w *entryWriter) connectAdded(out addReport) error {
	ctx := w.cmd.Context()
	a, err := w.connectOnce(ctx, out.Name)
	if err == nil && a.status.Status == messages.NeedsAuth && w.canAsk() {
		var retry bool
		if retry, err = w.askCredentials(ctx, out, a.status); err == nil && retry {
			a, err = w.connectOnce(ctx, out.Name)
		}
	}
	if err != nil {
		w.options.PrintRemark("the server stays in %s; mcpvisor remove %s takes it out", out.File, terminal.ShellWord(out.Name))
		return err
	}
	connected := status.IsCallable(a.status)
	out.Connected, out.Status = &connected, a.status.Status
	if connected {
		out.Milliseconds = a.took.Milliseconds()
		for _, t := range a.tools {
			out.Tools = append(out.Tools, addedTool{t.Name, t.Qualified, firstLine(t.Description)})
		}
		w.printAddedTools(a)
		return w.printReport(out)
	}
	e := status.NotConnectedError(a.status)
	e.Outcome = "" // no call was made, so that there is no outcome
	out.Error = e.Error()
	if err := w.printReport(out); err != nil {
		return err
	}
	w.options.WarnFailure(e)
	text := "it stays in " + out.File + "; when that is mended: mcpvisor reconnect " + terminal.ShellWord(out.Name)
	if a.status.Status == messages.NeedsAuth {
		text = "it stays in " + out.File
	}
	return exit.With(exit.Failed, messages.Line(text, 0)+"; to take it out: mcpvisor remove "+terminal.ShellWord(out.Name))
}

// connectOnce connects the server in the running mcpvisor up, if there is one that follows its files, else for a moment in this
// process. Errors are about finding out; a server that does not connect is a status, not an error.
func (w *entryWriter) connectOnce(ctx context.Context, name string) (connectResult, error) {
	p, err := project.Open(ctx, w.options)
	if err != nil {
		return connectResult{}, err
	}
	// An up that was started with --config or without control does not read the file that was just written.
	if p.Up != nil && !(p.ReloadUp(ctx) && slices.Contains(p.Names, name)) {
		w.options.PrintRemark("the running mcpvisor up does not follow its files; end it and start it again to have the server there")
		p.Close()
		// Without the control socket project.Open takes the servers from the files.
		alone := *w.options
		alone.NoControl = true
		if p, err = project.Open(ctx, &alone); err != nil {
			return connectResult{}, err
		}
	}
	defer p.Close()
	// The time that is printed includes an installation, which the person has waited for as well.
	began := time.Now()
	if err := p.StartServers(ctx, []string{name}, nil); err != nil {
		return connectResult{}, err
	}
	all, err := p.AwaitStatus(ctx, w.wait, name)
	if err != nil {
		return connectResult{}, err
	}
	a := connectResult{status: all[0], took: time.Since(began)}
	if status.IsCallable(a.status) {
		within, cancel := context.WithTimeout(ctx, w.wait)
		defer cancel()
		if a.tools, err = p.Tools(within, name); err != nil {
			return connectResult{}, err
		}
	}
	return a, nil
}

// printAddedTools prints the server's name, version and tools. Each text of the server is cut to one bounded line, because a
// server that was added a moment ago is not trusted. With --json it prints nothing; the report has the tools.
func (w *entryWriter) printAddedTools(a connectResult) {
	if w.asJSON {
		return
	}
	text := ""
	if i := a.status.ServerInfo; i != nil {
		text = "  " + strings.TrimSpace(messages.Line(i.Name, 60)+" "+messages.Line(i.Version, 30))
	}
	fmt.Fprintf(w.options.Out, "%s: %s%s in %s · %s\n", messages.Line(a.status.Name, 60),
		terminal.PaintText(w.options.Out, status.ColourOf(a.status.Status), string(a.status.Status)), text, terminal.ShortDuration(a.took), terminal.CountOf(len(a.tools), "tool"))
	for _, t := range a.tools {
		line := "  • " + messages.Line(t.Qualified, 120)
		if d := firstLine(t.Description); d != "" {
			line += "  " + d
		}
		fmt.Fprintln(w.options.Out, line)
	}
	for _, q := range a.status.Quarantined {
		fmt.Fprintf(w.options.Out, "  · %s  not offered: %s\n", messages.Line(q.Name, 80), messages.Line(q.Reason, 200))
	}
}

// firstLine returns the first line of a description, cut to 100 runes.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return messages.Line(strings.TrimSpace(line), 100)
}
