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
	// options are those that the manager is started with: its warnings and its log must not tear the display.
	options(o *options) *options
	begin(m *supervisor.Manager)
	event(e messages.Event)
	// called is told how a call ended that the run itself made.
	called(server string, o messages.Outcome)
	// reloaded is told what a reload of the configuration came to.
	reloaded(res supervisor.ReloadResult)
	// alone gives f the terminal for itself: a person is asked something. It returns when f has.
	alone(f func())
	// ending says that the servers are about to be ended, and why.
	ending(why string)
	// end says that they have been, and how long it took.
	end(took time.Duration)
}

// display chooses what fits where the output goes. gone is called when nobody reads it any more.
func (r *upRun) display(gone func()) display {
	out := &output{w: r.out, gone: gone}
	b := newBoard()
	b.ownTally = r.work != nil
	switch {
	case r.flags.json:
		return &jsonLines{run: r, out: out}
	case isTerminal(r.out) && os.Getenv("TERM") != "dumb":
		if !r.quiet {
			return newLive(r, out, b)
		}
	}
	if r.quiet {
		return &faultLines{plainLines{run: r, out: out, board: b}}
	}
	return &plainLines{run: r, out: out, board: b}
}

// follow takes an event in, with what it only points at, and returns what is worth telling.
func follow(b *board, m *supervisor.Manager, e messages.Event) (told []headline) {
	if h, ok := b.apply(e); ok {
		told = append(told, h)
	}
	switch e.Kind {
	case messages.EventTools:
		names := []string{e.Server}
		if e.Server == "" {
			names = b.names()
		}
		for _, name := range names {
			// One of several without live tools may be connected and not be in the catalog yet.
			if n := liveTools(m, name); n > 0 || e.Server != "" {
				if h, ok := b.offers(e.Time, name, n); ok {
					told = append(told, h)
				}
			}
		}
	case messages.EventGap:
		b.resync(m.Status())
	default:
	}
	return told
}

func liveTools(m *supervisor.Manager, server string) (n int) {
	for _, e := range m.Tools().Server(server) {
		if e.State == catalog.Live {
			n++
		}
	}
	return n
}

// output is a writer that reports once that nobody reads any more.
type output struct {
	w    io.Writer
	gone func()
}

func (o *output) print(text string) {
	if _, err := io.WriteString(o.w, text); err != nil {
		o.gone()
	}
}

// jsonLines is a display for programs: one JSON object a line.
type jsonLines struct {
	run *upRun
	mu  sync.Mutex
	out *output
}

// header is the first line.
type header struct {
	Version string    `json:"version"`
	Project string    `json:"project"`
	PID     int       `json:"pid"`
	Time    time.Time `json:"time"`
	Servers int       `json:"servers"`
}

func (j *jsonLines) options(o *options) *options { return o }

func (j *jsonLines) begin(*supervisor.Manager) {
	j.line(header{supervisor.Version(), j.run.project, os.Getpid(), time.Now(), len(j.run.servers)})
}

func (j *jsonLines) event(e messages.Event) { j.line(e) }
func (j *jsonLines) reloaded(res supervisor.ReloadResult) {
	j.line(struct {
		Kind string    `json:"kind"`
		Time time.Time `json:"time"`
		supervisor.ReloadResult
	}{"reload", time.Now(), res})
}
func (j *jsonLines) called(string, messages.Outcome) {} // the manager's events tell of it
func (j *jsonLines) alone(f func())                  { f() }
func (j *jsonLines) ending(string)                   {}
func (j *jsonLines) end(time.Duration)               {}

func (j *jsonLines) line(v any) {
	text, err := versioned(v)
	if err != nil {
		return // every value that stands in an event can be written
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.out.print(escapeUnsafe(string(text)) + "\n")
}

// plainLines is a display for logs: one line for each change, with its time.
type plainLines struct {
	run *upRun

	m     *supervisor.Manager
	mu    sync.Mutex
	out   *output
	board *board
	// stop ends the goroutine that tells about calls.
	stop, stopped chan struct{}
}

// callsEvery is how often the calls of a demo are summed up.
const callsEvery = 5 * time.Second

func (p *plainLines) options(o *options) *options { return o }

func (p *plainLines) begin(m *supervisor.Manager) {
	p.m = m
	if p.run.intro != "" {
		p.out.print(p.run.intro + "\n")
	}
	p.line(time.Now(), "", fmt.Sprintf("mcpvisor %s, process %d, %s", supervisor.Version(), os.Getpid(), p.run.what()))
	if p.run.waiting != "" {
		p.line(time.Now(), "", p.run.waiting)
	}
	p.stop, p.stopped = make(chan struct{}), make(chan struct{})
	go func() {
		defer close(p.stopped)
		defer p.run.catch()
		if !p.board.ownTally {
			return
		}
		t := time.NewTicker(callsEvery)
		defer t.Stop()
		for {
			select {
			case now := <-t.C:
				p.calls(now)
			case <-p.stop:
				return
			}
		}
	}()
}

func (p *plainLines) calls(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line(now, "", "calls so far: "+p.board.calls().String())
}

func (p *plainLines) event(e messages.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range follow(p.board, p.m, e) {
		p.line(h.at, h.server, h.text)
	}
}

func (p *plainLines) called(server string, o messages.Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.board.called(server, o)
}

func (p *plainLines) reloaded(res supervisor.ReloadResult) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.line(now, "", "configuration: "+reloadWords(res))
	for _, text := range reloadFaults(res) {
		p.line(now, "", text)
	}
}

// alone lets lines go on: they are for a log, and stand where a person reads along at most.
func (p *plainLines) alone(f func()) { f() }

func (p *plainLines) ending(why string) {
	close(p.stop)
	<-p.stopped
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.line(now, "", p.board.summary())
	if c := p.board.calls(); c.total() > 0 {
		p.line(now, "", "calls: "+c.String())
	}
	if trouble := auditTrouble(p.m.AuditStats()); trouble != "" {
		p.line(now, "", trouble)
	}
	p.line(now, "", why+"; ending "+count(len(p.board.servers), "server"))
	p.board.silent = true
}

func (p *plainLines) end(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line(time.Now(), "", "ended in "+shortly(took))
}

// line is called with mu held, or before anybody else is there.
func (p *plainLines) line(at time.Time, server, text string) {
	p.out.print(at.Local().Format(time.DateTime) + "  " + messages.Line(label(server)+text, 0) + "\n")
}

// faultLines is a display for who wants to hear of failures alone.
type faultLines struct{ plainLines }

func (f *faultLines) begin(m *supervisor.Manager)     { f.m = m }
func (f *faultLines) called(string, messages.Outcome) {}
func (f *faultLines) ending(string)                   {}
func (f *faultLines) end(time.Duration)               {}

func (f *faultLines) event(e messages.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range follow(f.board, f.m, e) {
		if h.phase == messages.Failed || h.phase == messages.NeedsAuth {
			f.line(h.at, h.server, h.text)
		}
	}
}

func (f *faultLines) reloaded(res supervisor.ReloadResult) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, text := range reloadFaults(res) {
		f.line(time.Now(), "", text)
	}
}

// label is the server in front of a sentence.
func label(server string) string {
	if server == "" {
		return ""
	}
	return messages.Line(server, 40) + ": "
}

// what says what a run is about: "9 servers of ~/project".
func (r *upRun) what() string {
	if r.flags.demo {
		return count(len(r.servers), "server") + " of the demo"
	}
	return count(len(r.servers), "server") + " of " + messages.Line(r.project, 0)
}

// where is what without the number: what is shown of the servers counts them as they are.
func (r *upRun) where() string {
	if r.flags.demo {
		return "the demo"
	}
	return messages.Line(r.project, 0)
}

// shortly is a duration for people.
func shortly(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}
