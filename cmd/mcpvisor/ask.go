package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/transports"
)

// askFlags are the persistent flags about what servers may ask.
type askFlags struct {
	answers   string
	noBrowser bool
	sampling  string
	yes       bool
	roots     []string

	samplingWords []string
	rootList      []messages.Root
}

func (a *askFlags) addTo(f *pflag.FlagSet) {
	f.StringVar(&a.answers, "answers", "", "answer the questions of servers from this JSON `file`: "+
		`{"SERVER": {"FIELD": value}}`)
	f.BoolVar(&a.noBrowser, "no-browser", false, "open no page that a server asks to be opened: only show its URL")
	f.StringVar(&a.sampling, "sampling-command", "",
		"let this `program` answer servers that ask for the model: params on its input, result on its output")
	f.BoolVar(&a.yes, "yes", false, "do not ask before a server uses the sampling command")
	f.StringArrayVar(&a.roots, "root", nil, "tell servers that they may work in this `directory` (repeatable)")
}

// managerFlag names a flag that matters only to who starts the servers; empty if none is given.
func (a *askFlags) managerFlag() string {
	switch {
	case a.sampling != "":
		return "--sampling-command"
	case len(a.roots) > 0:
		return "--root"
	}
	return ""
}

// readValues reads what the flags point at.
func (a *askFlags) readValues(d *prompter) error {
	if a.sampling != "" {
		words, err := config.Words(a.sampling)
		if err != nil || len(words) == 0 {
			return &exitError{exitUsage, "--sampling-command: it names no program that could be run; " +
				"write --sampling-command 'PROGRAM ARGUMENT…'"}
		}
		a.samplingWords = words
	}
	for _, dir := range a.roots {
		root, err := rootOf(dir)
		if err != nil {
			return err
		}
		a.rootList = append(a.rootList, root)
	}
	if a.answers != "" {
		answers, err := readAnswers(a.answers)
		if err != nil {
			return err
		}
		d.answers = answers
	}
	d.browser = !a.noBrowser
	return nil
}

// rootOf is a directory as servers are told of it.
func rootOf(dir string) (messages.Root, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(abs); err == nil && !info.IsDir() {
			return messages.Root{}, &exitError{exitUsage, fmt.Sprintf("--root: %q is no directory", messages.Line(dir, 200))}
		}
	}
	if err != nil {
		return messages.Root{}, &exitError{exitUsage, fmt.Sprintf("--root: %q: there is no such directory",
			messages.Line(dir, 200))}
	}
	path := filepath.ToSlash(abs)
	if !strings.HasPrefix(path, "/") { // C:/dir
		path = "/" + path
	}
	return messages.Root{URI: (&url.URL{Scheme: "file", Path: path}).String(), Name: filepath.Base(abs)}, nil
}

// setRequestHandlers gives the manager what servers may ask. What nobody could answer is not announced, so that servers can do
// without it.
func (o *options) setRequestHandlers(cfg *supervisor.Config, configured []string) {
	d := o.prompter
	if d == nil { // a completion starts nothing
		return
	}
	cfg.Ask = d.permitCall
	if d.hasTerminal() || d.answers != nil {
		cfg.Elicit, cfg.ElicitURL = d.answerElicitation, true
	}
	command := o.askFlags.samplingWords
	if command == nil {
		command = configured
	}
	if command != nil && (o.askFlags.yes || d.hasTerminal()) {
		s := &sampler{prompter: d, command: command, yes: o.askFlags.yes}
		cfg.Sample = s.answerSampling
	}
	if roots := o.askFlags.rootList; len(roots) > 0 {
		cfg.Roots = func(context.Context, string) ([]messages.Root, error) { return roots, nil }
	}
}

// prompter is where servers' questions reach the person: one at a time, from the answers that were given beforehand, or at
// the terminal.
type prompter struct {
	streams
	run        context.Context
	interrupts *interrupts
	answers    presetAnswers
	browser    bool
	openPage   func(url string) error
	// allowed are the rules of --allow; lasting says that the manager goes on after the call that is asked about.
	allowed      []access.Rule
	outlivesCall bool
	// guard ends what the sampling command has started, if this process is killed; nil if there is none.
	guard transports.Guard
	// withTerminal gives f the terminal for itself, without what else is shown there. It is set before servers start.
	withTerminal func(f func())

	lines lineReader
	queue promptQueue

	mu      sync.Mutex
	remarks map[string]time.Time // when it was last said of a server that a question was not shown
}

func newPrompter(ctx context.Context, s streams, i *interrupts) *prompter {
	return &prompter{
		streams: s, run: ctx, interrupts: i, openPage: openBrowser, withTerminal: func(f func()) { f() },
		lines: lineReader{in: s.in},
	}
}

// hasTerminal reports whether there is a person to be asked.
func (d *prompter) hasTerminal() bool { return isTerminal(d.in) && isTerminal(d.err) }

// printRemark prints a remark about a server, in a line.
func (d *prompter) printRemark(server, format string, args ...any) {
	fmt.Fprintf(d.err, "mcpvisor: server %q: %s\n", messages.Line(server, 60), messages.Printable(fmt.Sprintf(format, args...)))
}

// answerElicitation answers a server's question. It is called concurrently. An error that wraps messages.ErrNotShown says that no
// person saw it; a cancellation is a person's.
func (d *prompter) answerElicitation(ctx context.Context, r messages.ElicitRequest) (messages.ElicitResult, error) {
	res, missing := d.answers.answerTo(r)
	switch {
	case missing == "":
		d.printRemark(r.Server, "%s", answeredText(r, res))
		return res, nil
	case !d.hasTerminal():
		return messages.ElicitResult{}, d.reportUnseen(r.Server, notShownError(missing))
	}
	err := d.promptPerson(ctx, r.Server, serverPrompt, func(t *conversation) error {
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

// reportUnseen says that a question was not shown, once a minute for each server, and returns the error.
func (d *prompter) reportUnseen(server string, err error) error {
	now := time.Now()
	d.mu.Lock()
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

// promptForCommand is put for a question of a command of the person's own.
func (d *prompter) promptForCommand(ctx context.Context, server string, converse func(t *conversation) error) error {
	return d.promptPerson(ctx, server, commandPrompt, converse)
}

// promptPerson waits for the terminal and holds a conversation about one question there. The error says that there was none, or
// that it was broken off; it wraps messages.ErrNotShown if the person did not see the question.
func (d *prompter) promptPerson(ctx context.Context, server string, kind promptKind, converse func(t *conversation) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.run, cancel)()
	end, err := d.queue.waitTurn(ctx, server, kind)
	if err != nil {
		return err
	}
	defer end()
	if !isForeground(d.in) {
		return notShownError("mcpvisor does not run in the foreground of its terminal")
	}
	err = notShownError("the terminal is not free")
	d.withTerminal(func() {
		release := d.interrupts.captureNext(cancel)
		d.lines.dropTyped()
		err = converse(&conversation{ctx: ctx, lines: &d.lines, out: d.err})
		release(err == nil)
		if err != nil {
			fmt.Fprintln(d.err, "\nmcpvisor: the question is cancelled")
		}
	})
	return err
}

// openBrowser shows a page in the person's browser. The URL is an argument and never part of a command line.
func openBrowser(page string) error {
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
