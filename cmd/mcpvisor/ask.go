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

// askFlags holds the persistent flags about what servers may ask of the person, and the values that readValues makes of them.
type askFlags struct {
	// answers is the path of the file of preset answers.
	answers   string
	noBrowser bool
	// sampling is a command line; yes runs it without a question.
	sampling string
	yes      bool
	// roots are directories as the person typed them.
	roots []string

	// samplingWords are the words of sampling, rootList the directories of roots. Both are set by readValues.
	samplingWords []string
	rootList      []messages.Root
}

// addTo adds the flags to the persistent ones of the program.
func (a *askFlags) addTo(f *pflag.FlagSet) {
	f.StringVar(&a.answers, "answers", "", "answer the questions of servers from this JSON `file`: "+
		`{"SERVER": {"FIELD": value}}`)
	f.BoolVar(&a.noBrowser, "no-browser", false, "open no page that a server asks to be opened: only show its URL")
	f.StringVar(&a.sampling, "sampling-command", "",
		"let this `program` answer servers that ask for the model: params on its input, result on its output")
	f.BoolVar(&a.yes, "yes", false, "do not ask before a server uses the sampling command")
	f.StringArrayVar(&a.roots, "root", nil, "tell servers that they may work in this `directory` (repeatable)")
}

// managerFlag returns the name of a given flag that concerns only the process that starts the servers; "" if none is given.
// With a running up such a flag has no effect, and connectUp says so.
func (a *askFlags) managerFlag() string {
	switch {
	case a.sampling != "":
		return "--sampling-command"
	case len(a.roots) > 0:
		return "--root"
	}
	return ""
}

// readValues parses the values of the flags, and gives the prompter its preset answers. It runs after --dir has changed the
// directory. Every error is a usage error.
func (a *askFlags) readValues(d *prompter) error {
	if a.sampling != "" {
		words, err := config.Words(a.sampling)
		if err != nil || len(words) == 0 {
			return exitWith(exitUsage, "--sampling-command: it names no program that could be run; "+
				"write --sampling-command 'PROGRAM ARGUMENT…'")
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

// rootOf returns a directory as a root with a file: URI. The directory must exist, because a server would fail later and with a
// worse message.
func rootOf(dir string) (messages.Root, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(abs); err == nil && !info.IsDir() {
			return messages.Root{}, exitWith(exitUsage, fmt.Sprintf("--root: %q is no directory", messages.Line(dir, 200)))
		}
	}
	if err != nil {
		return messages.Root{}, exitWith(exitUsage, fmt.Sprintf("--root: %q: there is no such directory",
			messages.Line(dir, 200)))
	}
	path := filepath.ToSlash(abs)
	if !strings.HasPrefix(path, "/") { // Windows: C:/dir becomes /C:/dir in a URL
		path = "/" + path
	}
	return messages.Root{URI: (&url.URL{Scheme: "file", Path: path}).String(), Name: filepath.Base(abs)}, nil
}

// setRequestHandlers gives the manager the functions that answer requests of servers. A request kind that could not be answered
// here gets no function: the manager then does not announce the capability, and servers can do without it. configured is the
// sampling command of the configuration files, which --sampling-command overrides.
func setRequestHandlers(o *options, cfg *supervisor.Config, configured []string) {
	d := o.prompter
	if d == nil { // tests that ask nothing have none
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
	// A sampling command needs a consent of the person for each server, or --yes.
	if command != nil && (o.askFlags.yes || d.hasTerminal()) {
		s := &sampler{prompter: d, command: command, yes: o.askFlags.yes}
		cfg.Sample = s.answerSampling
	}
	if roots := o.askFlags.rootList; len(roots) > 0 {
		cfg.Roots = func(context.Context, string) ([]messages.Root, error) { return roots, nil }
	}
}

// prompter answers the questions of servers and of commands: from preset answers, or at the terminal, one question at a time.
// Its methods are safe for concurrent use, because the manager calls them from the goroutines of many servers.
type prompter struct {
	streams
	// run is the context of the whole command; it cancels an open question when the command ends.
	run        context.Context
	interrupts *interrupts
	answers    presetAnswers
	browser    bool
	openPage   func(url string) error
	// allowed holds the rules of --allow. outlivesCall says that the manager goes on after the call that is asked about, so
	// that an answer for the session makes sense.
	allowed      []access.Rule
	outlivesCall bool
	// guard ends what the sampling command has started, if this process is killed; nil if no guardian runs. startManager sets
	// it.
	guard transports.Guard
	// withTerminal calls f while nothing else draws on the terminal. It is set before servers start, and is never nil; it may
	// return without calling f if the display has ended.
	withTerminal func(f func())

	// lines reads what is typed, queue says whose question is next. Both have locks of their own.
	lines lineReader
	queue promptQueue

	// mu guards remarks.
	mu      sync.Mutex
	remarks map[string]time.Time // by server: when it was last said that a question was not shown
}

// newPrompter returns a prompter whose withTerminal calls its function directly, for commands that draw nothing.
func newPrompter(ctx context.Context, s streams, i *interrupts) *prompter {
	return &prompter{
		streams: s, run: ctx, interrupts: i, openPage: openBrowser, withTerminal: func(f func()) { f() },
		lines: lineReader{in: s.in},
	}
}

// hasTerminal reports whether a person can be asked: questions go to standard error and answers come from standard input, so
// that both must be terminals. Standard output may be a pipe.
func (d *prompter) hasTerminal() bool { return isTerminal(d.in) && isTerminal(d.err) }

// printRemark prints a remark about a server on one line of standard error.
func (d *prompter) printRemark(server, format string, args ...any) {
	fmt.Fprintf(d.err, "mcpvisor: server %q: %s\n", messages.Line(server, 60), messages.Printable(fmt.Sprintf(format, args...)))
}

// answerElicitation answers a question of a server (elicitation/create); the manager calls it concurrently. An error that wraps
// messages.ErrNotShown says that no person saw the question; a cancelled result means that a person did and cancelled.
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

// reportUnseen says on standard error that a question was not shown, at most once a minute for each server, and returns err.
// The bound keeps a server that asks in a loop from flooding the terminal.
func (d *prompter) reportUnseen(server string, err error) error {
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

// promptForCommand holds a conversation about a question of the command itself, such as an approval. Its place in the queue is
// not taken by questions of servers.
func (d *prompter) promptForCommand(ctx context.Context, server string, converse func(t *conversation) error) error {
	return d.promptPerson(ctx, server, commandPrompt, converse)
}

// promptPerson waits for its turn at the terminal and holds a conversation about one question there. It returns the error of
// converse, or an error that wraps messages.ErrNotShown if the person did not see the question. Ctrl-C cancels the question,
// not the command.
func (d *prompter) promptPerson(ctx context.Context, server string, kind promptKind, converse func(t *conversation) error) error {
	// The question ends with the request (ctx), with the command (d.run) and with Ctrl-C (captureNext).
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.run, cancel)()
	end, err := d.queue.waitTurn(ctx, server, kind)
	if err != nil {
		return err
	}
	defer end()
	// A process in the background would be stopped by SIGTTIN as soon as it reads.
	if !isForeground(d.in) {
		return notShownError("mcpvisor does not run in the foreground of its terminal")
	}
	// This error stays if withTerminal does not call its function.
	err = notShownError("the terminal is not free")
	d.withTerminal(func() {
		release := d.interrupts.captureNext(cancel)
		// What was typed before the question appeared must not answer it.
		d.lines.dropTyped()
		err = converse(&conversation{ctx: ctx, lines: &d.lines, out: d.err})
		release(err == nil)
		if err != nil {
			fmt.Fprintln(d.err, "\nmcpvisor: the question is cancelled")
		}
	})
	return err
}

// openBrowser shows a page in the person's browser. The URL is one argument of a program, never part of a shell's command line,
// because a server chose it.
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
