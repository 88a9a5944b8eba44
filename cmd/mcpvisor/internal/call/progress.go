package call

import (
	"fmt"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// progress shows on standard error how far a call has got: one line that is drawn over on a terminal, lines elsewhere.
type progress struct {
	options *cli.Options
	// mu guards shown and the writes, since progress arrives on the goroutine of the connection.
	mu    sync.Mutex
	shown bool // a line stands on the terminal and will be drawn over
}

// defaultHooks returns the hooks of a call through a running up, which let up ask the person at this terminal. A manager of
// this process asks through the prompter by itself, and gets none.
func defaultHooks(p *project.Project) control.CallHooks {
	a := control.CallHooks{}
	if p.Up != nil && p.Options.Prompter != nil && p.Options.Prompter.CanAnswer() {
		a.Ask = p.Options.Prompter.AnswerElicitation // a manager of this process asks by itself
	}
	if p.Up != nil && p.Options.Prompter != nil && (p.Options.Prompter.HasTerminal() || len(p.Options.Prompter.Allowed) > 0) {
		p.Options.Prompter.OutlivesCall = true
		a.Permit = p.Options.Prompter.PermitCall
	}
	return a
}

// showProgress shows a report, cut to one line on a terminal.
func (g *progress) showProgress(p messages.Progress) {
	text := progressText(p)
	g.mu.Lock()
	defer g.mu.Unlock()
	if !terminal.IsTerminal(g.options.Err) {
		fmt.Fprintln(g.options.Err, "mcpvisor: "+text)
		return
	}
	// A longer text would wrap, and the next report would draw over its last line only.
	if columns := terminal.ColumnsOf(g.options.Err); columns > 4 {
		text = messages.Line(text, columns-1)
	}
	fmt.Fprint(g.options.Err, "\r\x1b[2K"+text)
	g.shown = true
}

// clear removes the line; it may be called more than once.
func (g *progress) clear() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shown {
		fmt.Fprint(g.options.Err, "\r\x1b[2K")
		g.shown = false
	}
}

// withTerminal calls f, which asks the person something, while reports wait for the lock that it holds.
func (g *progress) withTerminal(f func()) {
	g.clear()
	g.mu.Lock()
	defer g.mu.Unlock()
	f()
}

// progressText returns a report in a few words: "3 of 10 (30 %): indexing".
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

// formatNumber prints a number with two decimals, or none if it is whole: the protocol sends progress as floating point.
func formatNumber(f float64) string { return strings.TrimSuffix(fmt.Sprintf("%.2f", f), ".00") }
