// Package ask asks the person at the terminal, on behalf of servers (forms, pages, use of the model), of calls that need a
// permission, and of commands.
//
// How it fits: a run has one [Prompter], which its manager calls from the goroutines of many servers. Each question waits for
// its turn in a queue with bounds for each server and kind, so that no server can keep the person from other questions. Then it
// holds a [Conversation] on standard error and standard input, which Ctrl-C cancels without ending the command. Preset answers
// (--answers) and --sampling-command answer without a person. What could not be shown is refused with messages.ErrNotShown.
//
//	servers ─┐
//	calls    ├─> promptQueue ──one at a time──> Conversation ──> the terminal
//	commands ┘
//
// Guarantees: one question at a time stands on the terminal, and what was typed before it was shown answers nothing. A question ends
// with the request that caused it, so that no answer goes to a server that has left. Texts of servers are cut, escaped and shown as
// theirs; the content that a server gets is exactly what the person saw last.
//
// Not promised: an answer. Without a terminal, a preset answer or a sampling command a question is refused at once, and one that
// finds its queue full as well.
package ask

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

// Prompter answers the questions of servers and of commands: from preset answers, or at the terminal, one question at a time.
// Its methods are safe for concurrent use, because the manager calls them from the goroutines of many servers.
type Prompter struct {
	terminal.Streams
	// run is the context of the whole command; it cancels an open question when the command ends.
	run        context.Context
	interrupts *exit.Interrupts
	answers    presetAnswers
	browser    bool
	OpenPage   func(url string) error
	// Allowed holds the rules of --allow. OutlivesCall says that the manager goes on after the call that is asked about, so
	// that an answer for the session makes sense.
	Allowed      []access.Rule
	OutlivesCall bool
	// Guard ends what the sampling command has started, if this process is killed; nil if no guardian runs. StartManager sets
	// it.
	Guard stdio.Guard
	// WithTerminal calls f while nothing else draws on the terminal. It is set before servers start, and is never nil; it may
	// return without calling f if the display has ended.
	WithTerminal func(f func())

	// Lines reads what is typed, queue says whose question is next. Both have locks of their own.
	Lines lineReader
	queue promptQueue

	// mu guards remarks.
	mu      sync.Mutex
	remarks map[string]time.Time // by server: when it was last said that a question was not shown
}

// NewPrompter returns a prompter whose WithTerminal calls its function directly, for commands that draw nothing.
func NewPrompter(ctx context.Context, s terminal.Streams, i *exit.Interrupts) *Prompter {
	return &Prompter{
		Streams: s, run: ctx, interrupts: i, OpenPage: OpenBrowser, WithTerminal: func(f func()) { f() },
		Lines: lineReader{in: s.In},
	}
}

// HasTerminal reports whether a person can be asked: questions go to standard error and answers come from standard input, so
// that both must be terminals. Standard output may be a pipe.
func (d *Prompter) HasTerminal() bool { return terminal.IsTerminal(d.In) && terminal.IsTerminal(d.Err) }

// CanAnswer reports whether questions of servers can be answered: by a person, or from preset answers.
func (d *Prompter) CanAnswer() bool { return d.HasTerminal() || d.answers != nil }

// printRemark prints a remark about a server on one line of standard error.
func (d *Prompter) printRemark(server, format string, args ...any) {
	fmt.Fprintf(d.Err, "mcpvisor: server %q: %s\n", messages.Line(server, 60), messages.Printable(fmt.Sprintf(format, args...)))
}

// AnswerElicitation answers a question of a server (elicitation/create); the manager calls it concurrently. An error that wraps
// messages.ErrNotShown says that no person saw the question; a cancelled result means that a person did and cancelled.
func (d *Prompter) AnswerElicitation(ctx context.Context, r messages.ElicitRequest) (messages.ElicitResult, error) {
	res, missing := d.answers.answerTo(r)
	switch {
	case missing == "":
		d.printRemark(r.Server, "%s", answeredText(r, res))
		return res, nil
	case !d.HasTerminal():
		return messages.ElicitResult{}, d.reportUnseen(r.Server, notShownError(missing))
	}
	err := d.promptPerson(ctx, r.Server, serverPrompt, func(t *Conversation) error {
		var err error
		if r.Mode == messages.ElicitURL {
			res, err = t.askOpenPage(r, d)
		} else {
			res, err = t.fillForm(r, d.answers.fieldsFor(r.Server))
		}
		return err
	})
	switch {
	case errors.Is(err, messages.ErrNotShown):
		return messages.ElicitResult{}, d.reportUnseen(r.Server, err)
	case err != nil:
		res = messages.ElicitResult{Action: messages.ElicitCancel}
	}
	return res, nil
}

// reportUnseen says on standard error that a question was not shown, at most once a minute for each server, and returns err.
// The bound keeps a server that asks in a loop from flooding the terminal.
func (d *Prompter) reportUnseen(server string, err error) error {
	now := time.Now()
	d.mu.Lock()
	// Old entries are removed here, so that the map holds only servers of the last minute.
	maps.DeleteFunc(d.remarks, func(_ string, at time.Time) bool { return now.Sub(at) >= time.Minute })
	_, said := d.remarks[server]
	if d.remarks == nil {
		d.remarks = map[string]time.Time{}
	}
	if !said {
		d.remarks[server] = now
	}
	d.mu.Unlock()
	var e *messages.Error
	if !said && errors.As(err, &e) {
		d.printRemark(server, "%s", e.Text)
	}
	return err
}

// PromptForCommand holds a conversation about a question of the command itself, such as an approval. Its place in the queue is
// not taken by questions of servers.
func (d *Prompter) PromptForCommand(ctx context.Context, server string, converse func(t *Conversation) error) error {
	return d.promptPerson(ctx, server, commandPrompt, converse)
}

// promptPerson waits for its turn at the terminal and holds a conversation about one question there. It returns the error of
// converse, or an error that wraps messages.ErrNotShown if the person did not see the question. Ctrl-C cancels the question,
// not the command.
func (d *Prompter) promptPerson(ctx context.Context, server string, kind promptKind, converse func(t *Conversation) error) error {
	// The question ends with the request (ctx), with the command (d.run) and with Ctrl-C (CaptureNext).
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.run, cancel)()
	end, err := d.queue.waitTurn(ctx, server, kind)
	if err != nil {
		return err
	}
	defer end()
	// A process in the background would be stopped by SIGTTIN as soon as it reads.
	if !isForeground(d.In) {
		return notShownError("mcpvisor does not run in the foreground of its terminal")
	}
	// This error stays if WithTerminal does not call its function.
	err = notShownError("the terminal is not free")
	d.WithTerminal(func() {
		release := d.interrupts.CaptureNext(cancel)
		// What was typed before the question appeared must not answer it.
		d.Lines.DropTyped()
		err = converse(&Conversation{ctx: ctx, Lines: &d.Lines, Out: d.Err})
		release(err == nil)
		if err != nil {
			fmt.Fprintln(d.Err, "\nmcpvisor: the question is cancelled")
		}
	})
	return err
}

// OpenBrowser shows a page in the person's browser. The URL is one argument of a program, never part of a shell's command line,
// because a server chose it.
func OpenBrowser(page string) error {
	var command string
	var args []string
	switch runtime.GOOS {
	case "windows":
		command, args = "rundll32", []string{"url.dll,FileProtocolHandler", page}
	case "darwin":
		command, args = "open", []string{page}
	default:
		command, args = "xdg-open", []string{page}
	}
	return startDetached(command, args...)
}
