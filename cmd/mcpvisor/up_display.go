package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// display shows a run of `up` to somebody. All methods are safe for concurrent use; begin is the first and end the
// last.
type display interface {
	// wrapOptions are those that the manager is started with: its warnings and its log must not tear the display.
	wrapOptions(o *options) *options
	beginRun(m *supervisor.Manager)
	showEvent(e messages.Event)
	// countCall is told how a call ended that the run itself made.
	countCall(server string, o messages.Outcome)
	// showReload is told what a reload of the configuration came to.
	showReload(res supervisor.ReloadResult)
	// withTerminal gives f the terminal for itself: a person is asked something. It returns when f has.
	withTerminal(f func())
	// showEnding says that the servers are about to be ended, and why.
	showEnding(why string)
	// showEnded says that they have been, and how long it took.
	showEnded(took time.Duration)
}

// chooseDisplay chooses what fits where the output goes. gone is called when nobody reads it any more.
func (r *upRun) chooseDisplay(onClosed func()) display {
	out := &displayWriter{w: r.out, onClosed: onClosed}
	b := newBoard()
	b.countsOwnCalls = r.work != nil
	switch {
	case r.flags.json:
		return &jsonLines{run: r, out: out}
	case isTerminal(r.out) && os.Getenv("TERM") != "dumb":
		if !r.quiet {
			return newLiveTable(r, out, b)
		}
	}
	if r.quiet {
		return &failureLines{plainLines{run: r, out: out, board: b}}
	}
	return &plainLines{run: r, out: out, board: b}
}

// recordEvent takes an event in, with what it only points at, and returns what is worth telling.
func recordEvent(b *board, m *supervisor.Manager, e messages.Event) (lines []eventLine) {
	if h, ok := b.applyEvent(e); ok {
		lines = append(lines, h)
	}
	switch e.Kind {
	case messages.EventTools:
		names := []string{e.Server}
		if e.Server == "" {
			names = b.serverNames()
		}
		for _, name := range names {
			// One of several without live tools may be connected and not be in the catalog yet.
			if n := liveTools(m, name); n > 0 || e.Server != "" {
				if h, ok := b.setToolCount(e.Time, name, n); ok {
					lines = append(lines, h)
				}
			}
		}
	case messages.EventGap:
		b.resyncStatuses(m.Status())
	default:
	}
	return lines
}

func liveTools(m *supervisor.Manager, server string) (n int) {
	for _, e := range m.Tools().Server(server) {
		if e.State == catalog.Live {
			n++
		}
	}
	return n
}

// displayWriter is a writer that reports once that nobody reads any more.
type displayWriter struct {
	w        io.Writer
	onClosed func()
}

func (o *displayWriter) printText(text string) {
	if _, err := io.WriteString(o.w, text); err != nil {
		o.onClosed()
	}
}

// jsonLines is a display for programs: one JSON object a line.
type jsonLines struct {
	run *upRun
	mu  sync.Mutex
	out *displayWriter
}

// header is the first line.
type header struct {
	Version string    `json:"version"`
	Project string    `json:"project"`
	PID     int       `json:"pid"`
	Time    time.Time `json:"time"`
	Servers int       `json:"servers"`
}

func (j *jsonLines) wrapOptions(o *options) *options { return o }

func (j *jsonLines) beginRun(*supervisor.Manager) {
	j.printLine(header{supervisor.Version(), j.run.project, os.Getpid(), time.Now(), len(j.run.servers)})
}

func (j *jsonLines) showEvent(e messages.Event) { j.printLine(e) }
func (j *jsonLines) showReload(res supervisor.ReloadResult) {
	j.printLine(struct {
		Kind string    `json:"kind"`
		Time time.Time `json:"time"`
		supervisor.ReloadResult
	}{"reload", time.Now(), res})
}
func (j *jsonLines) countCall(string, messages.Outcome) {} // the manager's events tell of it
func (j *jsonLines) withTerminal(f func())              { f() }
func (j *jsonLines) showEnding(string)                  {}
func (j *jsonLines) showEnded(time.Duration)            {}

func (j *jsonLines) printLine(v any) {
	text, err := versionedJSON(v)
	if err != nil {
		return // every value that stands in an event can be written
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.out.printText(escapeUnsafe(string(text)) + "\n")
}

// plainLines is a display for logs: one line for each change, with its time.
type plainLines struct {
	run *upRun

	m     *supervisor.Manager
	mu    sync.Mutex
	out   *displayWriter
	board *board
	// stop ends the goroutine that tells about calls.
	stop, stopped chan struct{}
}

// callsInterval is how often the calls of a demo are summed up.
const callsInterval = 5 * time.Second

func (p *plainLines) wrapOptions(o *options) *options { return o }

func (p *plainLines) beginRun(m *supervisor.Manager) {
	p.m = m
	if p.run.intro != "" {
		p.out.printText(p.run.intro + "\n")
	}
	p.printLine(time.Now(), "", fmt.Sprintf("mcpvisor %s, process %d, %s", supervisor.Version(), os.Getpid(), p.run.aboutText()))
	if p.run.emptyText != "" {
		p.printLine(time.Now(), "", p.run.emptyText)
	}
	p.stop, p.stopped = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(p.stopped)
		defer p.run.catchPanic()
		if !p.board.countsOwnCalls {
			return
		}
		t := time.NewTicker(callsInterval)
		defer t.Stop()
		for {
			select {
			case now := <-t.C:
				p.printCalls(now)
			case <-p.stop:
				return
			}
		}
	}()
}

func (p *plainLines) printCalls(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.printLine(now, "", "calls so far: "+p.board.totalCalls().String())
}

func (p *plainLines) showEvent(e messages.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range recordEvent(p.board, p.m, e) {
		p.printLine(h.at, h.server, h.text)
	}
}

func (p *plainLines) countCall(server string, o messages.Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.board.countCall(server, o)
}

func (p *plainLines) showReload(res supervisor.ReloadResult) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.printLine(now, "", "configuration: "+reloadText(res))
	for _, text := range reloadProblems(res) {
		p.printLine(now, "", text)
	}
}

// withTerminal lets lines go on: they are for a log, and stand where a person reads along at most.
func (p *plainLines) withTerminal(f func()) { f() }

func (p *plainLines) showEnding(cause string) {
	close(p.stop)
	<-p.stopped
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.printLine(now, "", p.board.phaseSummary())
	if c := p.board.totalCalls(); c.total() > 0 {
		p.printLine(now, "", "calls: "+c.String())
	}
	if trouble := auditTrouble(p.m.AuditStats()); trouble != "" {
		p.printLine(now, "", trouble)
	}
	p.printLine(now, "", cause+"; ending "+countOf(len(p.board.servers), "server"))
	p.board.silent = true
}

func (p *plainLines) showEnded(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.printLine(time.Now(), "", "ended in "+shortDuration(took))
}

// printLine is called with mu held, or before anybody else is there.
func (p *plainLines) printLine(at time.Time, server, text string) {
	p.out.printText(at.Local().Format(time.DateTime) + "  " + messages.Line(serverPrefix(server)+text, 0) + "\n")
}

// failureLines is a display for who wants to hear of failures alone.
type failureLines struct{ plainLines }

func (f *failureLines) beginRun(m *supervisor.Manager)     { f.m = m }
func (f *failureLines) countCall(string, messages.Outcome) {}
func (f *failureLines) showEnding(string)                  {}
func (f *failureLines) showEnded(time.Duration)            {}

func (f *failureLines) showEvent(e messages.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range recordEvent(f.board, f.m, e) {
		if h.phase == messages.Failed || h.phase == messages.NeedsAuth {
			f.printLine(h.at, h.server, h.text)
		}
	}
}

func (f *failureLines) showReload(res supervisor.ReloadResult) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, text := range reloadProblems(res) {
		f.printLine(time.Now(), "", text)
	}
}

// serverPrefix is the server in front of a sentence.
func serverPrefix(server string) string {
	if server == "" {
		return ""
	}
	return messages.Line(server, 40) + ": "
}

// aboutText says what a run is about: "9 servers of ~/project".
func (r *upRun) aboutText() string {
	if r.flags.demo {
		return countOf(len(r.servers), "server") + " of the demo"
	}
	return countOf(len(r.servers), "server") + " of " + messages.Line(r.project, 0)
}

// projectText is what without the number: what is shown of the servers counts them as they are.
func (r *upRun) projectText() string {
	if r.flags.demo {
		return "the demo"
	}
	return messages.Line(r.project, 0)
}

// shortDuration is a duration for people.
func shortDuration(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
