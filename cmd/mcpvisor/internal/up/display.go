package up

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/actors/catalog"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/inspect"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
)

// display shows a run of up. All methods are safe for concurrent use. beginRun is called once and first, then showEnding, and
// showEnded last.
type display interface {
	// wrapOptions returns the options for the manager, whose warnings and log must not tear the display.
	wrapOptions(o *cli.Options) *cli.Options
	// beginRun shows that the run has begun. showEvent is called in the order of the events.
	beginRun(m statusSource)
	showEvent(e messages.Event)
	// countCall counts a call that the run itself made, and how it ended.
	countCall(server string, o messages.Outcome)
	// showReload shows what a reload of the configuration changed.
	showReload(res supervisor.ReloadResult)
	// withTerminal calls f, which asks the person something, while nothing else is drawn. It returns when f has returned.
	withTerminal(f func())
	// showEnding says that the servers are about to be ended, and why.
	showEnding(why string)
	// showEnded says that they have ended, and how long that took.
	showEnded(took time.Duration)
}

// chooseDisplay chooses the display that fits the flags and the output. onClosed is called when the output has no reader any
// more.
func (r *upRun) chooseDisplay(onClosed func()) display {
	out := &displayWriter{w: r.options.Out, onClosed: onClosed}
	b := newBoard()
	b.countsOwnCalls = r.work != nil
	switch {
	case r.flags.json:
		return &jsonLines{run: r, out: out}
	case terminal.IsTerminal(r.options.Out) && os.Getenv("TERM") != "dumb":
		if !r.options.Quiet {
			return newLiveTable(r, out, b)
		}
	}
	if r.options.Quiet {
		return &failureLines{plainLines{run: r, out: out, board: b}}
	}
	return &plainLines{run: r, out: out, board: b}
}

// recordEvent updates the board by an event, looks up what the event does not carry (tools, or all statuses after a gap), and
// returns the lines that are worth showing. The caller holds the display's lock.
func recordEvent(b *board, m statusSource, e messages.Event) (lines []eventLine) {
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
			// Without a name the catalog has changed for several servers. One that is connected and not in the catalog yet
			// counts 0, which is no change of its tools.
			if n := m.countTools(name); n > 0 || e.Server != "" {
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

// statusSource is what a display asks about the servers: the manager of this process, or the daemon's.
type statusSource interface {
	Status() []messages.Status
	// AuditStats says how the record of calls fares.
	AuditStats() audit.Stats
	// countTools returns the number of tools of a server that can be called now.
	countTools(server string) int
}

// ownManager is the manager of this process.
type ownManager struct{ *supervisor.Manager }

func (m ownManager) countTools(server string) (n int) {
	for _, e := range m.Tools().Server(server) {
		if e.State == catalog.Live {
			n++
		}
	}
	return n
}

// displayWriter writes to the output of the run and calls onClosed at each write that fails.
type displayWriter struct {
	w        io.Writer
	onClosed func()
}

// printText writes a text as a whole, so that a line or a picture is not torn.
func (o *displayWriter) printText(text string) {
	if _, err := io.WriteString(o.w, text); err != nil {
		o.onClosed()
	}
}

// jsonLines is a display for programs: one JSON object a line. mu keeps lines of two goroutines apart.
type jsonLines struct {
	run *upRun
	mu  sync.Mutex
	out *displayWriter
}

// header is the first line of jsonLines.
type header struct {
	Version string    `json:"version"`
	Project string    `json:"project"`
	PID     int       `json:"pid"`
	Time    time.Time `json:"time"`
	// Servers is the number of configured servers, connected or not.
	Servers int `json:"servers"`
}

// wrapOptions changes nothing: standard error is another stream.
func (j *jsonLines) wrapOptions(o *cli.Options) *cli.Options { return o }

// beginRun prints the header.
func (j *jsonLines) beginRun(statusSource) {
	j.printLine(header{supervisor.Version(), j.run.project, os.Getpid(), time.Now(), len(j.run.servers)})
}

// showEvent prints the event as the manager published it, with its sequence number, by which a program sees a gap.
func (j *jsonLines) showEvent(e messages.Event) { j.printLine(e) }

// showReload prints a reload as an event of its own kind. The manager does not know of files, and publishes none for it.
func (j *jsonLines) showReload(res supervisor.ReloadResult) {
	j.printLine(struct {
		Kind string    `json:"kind"`
		Time time.Time `json:"time"`
		supervisor.ReloadResult
	}{"reload", time.Now(), res})
}
func (j *jsonLines) countCall(string, messages.Outcome) {} // the manager's events report calls
func (j *jsonLines) withTerminal(f func())              { f() }
func (j *jsonLines) showEnding(string)                  {}
func (j *jsonLines) showEnded(time.Duration)            {}

// printLine prints a value as one line of JSON.
func (j *jsonLines) printLine(v any) {
	text, err := terminal.VersionedJSON(v)
	if err != nil {
		return // every value of an event can be written as JSON
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.out.printText(terminal.EscapeUnsafe(string(text)) + "\n")
}

// plainLines is a display for logs: one line for each change, with its time.
type plainLines struct {
	run *upRun

	// m is set by beginRun. mu guards out and board from then on.
	m     statusSource
	mu    sync.Mutex
	out   *displayWriter
	board *board
	// stop ends the goroutine that prints the counts of calls; stopped is closed when it has ended.
	stop, stopped chan struct{}
}

// callsInterval is the time between two summaries of the calls of a demo.
const callsInterval = 5 * time.Second

// wrapOptions changes nothing, since lines of a log may stand between these.
func (p *plainLines) wrapOptions(o *cli.Options) *cli.Options { return o }

// beginRun prints what runs, and starts the summaries of calls if the run makes calls.
func (p *plainLines) beginRun(m statusSource) {
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

// printCalls prints a summary of the calls so far.
func (p *plainLines) printCalls(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.printLine(now, "", "calls so far: "+p.board.totalCalls().String())
}

// showEvent prints the lines about an event.
func (p *plainLines) showEvent(e messages.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range recordEvent(p.board, p.m, e) {
		p.printLine(h.at, h.server, h.text)
	}
}

// countCall counts a call for the next summary.
func (p *plainLines) countCall(server string, o messages.Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.board.countCall(server, o)
}

// showReload prints what changed, and each fault of the files on a line of its own.
func (p *plainLines) showReload(res supervisor.ReloadResult) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	p.printLine(now, "", "configuration: "+reloadText(res))
	for _, text := range reloadProblems(res) {
		p.printLine(now, "", text)
	}
}

// withTerminal calls f at once. Lines go on meanwhile, because the log is read elsewhere.
func (p *plainLines) withTerminal(f func()) { f() }

// showEnding prints the summary of the run: phases, calls, trouble with the record. Events of servers that end from now on make
// no lines.
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
	if trouble := inspect.AuditTrouble(p.m.AuditStats()); trouble != "" {
		p.printLine(now, "", trouble)
	}
	p.printLine(now, "", cause+"; "+p.run.endText(len(p.board.servers)))
	p.board.silent = true
}

// showEnded prints how long the end took.
func (p *plainLines) showEnded(took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.printLine(time.Now(), "", "ended in "+terminal.ShortDuration(took))
}

// printLine prints a line with its time. The caller holds mu, unless no other goroutine exists yet.
func (p *plainLines) printLine(at time.Time, server, text string) {
	p.out.printText(at.Local().Format(time.DateTime) + "  " + messages.Line(serverPrefix(server)+text, 0) + "\n")
}

// failureLines is a display that shows only servers that fail or need credentials, for --quiet.
type failureLines struct{ plainLines }

// beginRun starts no summaries, so that showEnding has none to stop.
func (f *failureLines) beginRun(m statusSource)            { f.m = m }
func (f *failureLines) countCall(string, messages.Outcome) {}
func (f *failureLines) showEnding(string)                  {}
func (f *failureLines) showEnded(time.Duration)            {}

// showEvent prints the lines about failures.
func (f *failureLines) showEvent(e messages.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range recordEvent(f.board, f.m, e) {
		if h.phase == messages.Failed || h.phase == messages.NeedsAuth {
			f.printLine(h.at, h.server, h.text)
		}
	}
}

// showReload prints the faults of the files and not what changed.
func (f *failureLines) showReload(res supervisor.ReloadResult) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, text := range reloadProblems(res) {
		f.printLine(time.Now(), "", text)
	}
}

// serverPrefix returns the name of a server as the beginning of a line; "" for no server.
func serverPrefix(server string) string {
	if server == "" {
		return ""
	}
	return messages.Line(server, 40) + ": "
}

// aboutText says what the run is about: "9 servers of ~/project".
func (r *upRun) aboutText() string {
	if r.flags.demo {
		return terminal.CountOf(len(r.servers), "server") + " of the demo"
	}
	return terminal.CountOf(len(r.servers), "server") + " of " + messages.Line(r.project, 0)
}

// projectText is aboutText without the number, for the table, which counts the servers itself.
func (r *upRun) projectText() string {
	if r.flags.demo {
		return "the demo"
	}
	return messages.Line(r.project, 0)
}
