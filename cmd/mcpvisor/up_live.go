package main

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"golang.org/x/term"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// What is sent to the terminal. The picture has the alternate screen for itself, so that keys which are typed, and
// changes of the size, do no lasting damage, and what stood there before is there again afterwards. Nothing else is
// changed for longer than a picture takes: a mcpvisor that is killed cannot put it right.
const (
	ansiEnter = "\x1b[?1049h\x1b[2J"
	ansiLeave = "\x1b[?1049l"
	// ansiHome begins a picture: shown as a whole by terminals that can, without cursor, without automatic line breaks.
	// ansiDone ends it.
	ansiHome = "\x1b[?2026h\x1b[?25l\x1b[?7l\x1b[H"
	ansiDone = "\x1b[J\x1b[?7h\x1b[?25h\x1b[?2026l"
	// ansiClear empties the line before it is written: after a full line it would take its last character.
	ansiClear = "\x1b[2K"
)

const (
	// frameTime is the least time between two pictures.
	frameTime = 100 * time.Millisecond
	// logKept is how many lines of the log are kept for the time after the picture.
	logKept = 200
)

// liveTable is a display for a person: a table that is kept up to date on the terminal.
type liveTable struct {
	run   *upRun
	out   *displayWriter
	size  func() (width, height int)
	began time.Time
	m     *supervisor.Manager
	log   *pausableWriter

	mu    sync.Mutex
	board *board
	dirty bool
	// problems are what is wrong with the configuration.
	problems []string
	// restart are the keys of the files that count from the next start on.
	restart []string
	// drawn is the last picture, to leave the terminal alone when nothing has changed.
	drawn string

	stop, stopped chan struct{}
	// terminalJobs are what wants the terminal for itself.
	terminalJobs chan func()
}

// faultColour is that of what is wrong with the configuration.
var faultColour = text.Colors{text.FgYellow}

func newLiveTable(r *upRun, out *displayWriter, b *board) *liveTable {
	size := func() (int, int) { return 80, 24 }
	if f := fileOf(r.out); f != nil {
		size = func() (int, int) {
			w, h, err := term.GetSize(int(f.Fd()))
			if err != nil || w <= 0 || h <= 0 {
				return 80, 24
			}
			return w, h
		}
	}
	return &liveTable{run: r, out: out, board: b, size: size, log: &pausableWriter{w: r.err},
		stop: make(chan struct{}), stopped: make(chan struct{}), terminalJobs: make(chan func())}
}

// wrapOptions keeps what is written to standard error until the picture is gone, if it would land in it.
func (l *liveTable) wrapOptions(o *options) *options {
	if !isTerminal(o.err) {
		return o
	}
	quiet := *o
	quiet.err = l.log
	return &quiet
}

func (l *liveTable) beginRun(m *supervisor.Manager) {
	l.m, l.began = m, time.Now()
	for _, text := range l.run.notes {
		l.board.addEvent(eventLine{at: l.began, text: text})
	}
	l.log.pauseOutput()
	l.out.printText(ansiEnter)
	go l.paintLoop()
}

// paintLoop draws until ending. It is the only one who writes to the terminal meanwhile.
func (l *liveTable) paintLoop() {
	defer close(l.stopped)
	defer l.run.catchPanic()
	t := time.NewTicker(frameTime)
	defer t.Stop()
	suspended, end := suspendSignals()
	defer end()
	width, height, second := 0, 0, int64(0)
	for {
		select {
		case <-suspended:
			l.withoutTable(suspendProcess)
			second = 0
		case f := <-l.terminalJobs:
			l.withoutTable(f)
			second = 0
		case <-l.stop:
			return
		case now := <-t.C:
			w, h := l.size()
			l.mu.Lock()
			due := l.dirty || w != width || h != height || now.Unix() != second
			l.dirty = false
			width, height, second = w, h, now.Unix()
			l.mu.Unlock()
			if due {
				l.drawFrame(now, w, h)
			}
		}
	}
}

// withoutTable gives f the terminal as it was before the picture.
func (l *liveTable) withoutTable(f func()) {
	l.out.printText(ansiLeave)
	f()
	l.out.printText(ansiEnter)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drawn = ""
}

// withTerminal waits for the goroutine that draws. When that has ended the terminal is nobody's.
func (l *liveTable) withTerminal(f func()) {
	done := make(chan struct{})
	turn := func() {
		defer close(done)
		f()
	}
	select {
	case l.terminalJobs <- turn:
		<-done
	case <-l.stopped:
		f()
	}
}

func (l *liveTable) drawFrame(now time.Time, width, height int) {
	l.mu.Lock()
	f := l.newFrame(now, width, height)
	picture := ansiClear + strings.Join(f.renderLines(), "\r\n"+ansiClear)
	changed := picture != l.drawn
	l.drawn = picture
	l.mu.Unlock()
	if changed {
		l.out.printText(ansiHome + picture + ansiDone)
	}
}

func (l *liveTable) newFrame(now time.Time, width, height int) *frame {
	f := &frame{board: l.board, now: now, width: width, height: height, coloured: usesColours(l.run.out)}
	f.head = append(f.head, f.paintText(text.Colors{text.Bold}, "mcpvisor "+supervisor.Version())+
		" · "+l.run.projectText()+" · "+now.Sub(l.began).Round(time.Second).String(), l.board.phaseSummary())
	if f.intro = l.run.intro; len(l.board.servers) == 0 && l.run.emptyText != "" {
		f.intro = l.run.emptyText
	}
	if c := l.board.totalCalls(); c.total() > 0 {
		f.head = append(f.head, "calls: "+c.String())
	}
	f.foot = []string{f.paintText(text.Colors{text.Faint},
		"Ctrl-C ends the servers and mcpvisor · in another terminal: mcpvisor why SERVER")}
	if n := len(l.problems); n > 0 {
		first := l.problems[0]
		if n > 1 {
			first += fmt.Sprintf(" (and %d more: mcpvisor config check)", n-1)
		}
		f.foot = append(f.foot, f.paintText(faultColour, messages.Line(first, width)))
	}
	if len(l.restart) > 0 {
		f.foot = append(f.foot, f.paintText(faultColour, messages.Line(restartText(l.restart), width)))
	}
	if l.m != nil {
		if trouble := auditTrouble(l.m.AuditStats()); trouble != "" {
			f.foot = append(f.foot, f.paintText(faultColour, messages.Line(trouble, width)))
		}
	}
	return f
}

func (l *liveTable) showEvent(e messages.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	recordEvent(l.board, l.m, e)
	l.dirty = true
}

func (l *liveTable) countCall(server string, o messages.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.board.countCall(server, o)
	l.dirty = true
}

// showReload tells it among the news, and what is wrong stays in the foot until it is mended.
func (l *liveTable) showReload(res supervisor.ReloadResult) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.board.addEvent(eventLine{at: time.Now(), text: "configuration: " + reloadText(res)})
	l.problems, l.restart = reloadProblems(res), res.Restart
	l.dirty = true
}

// showEnding leaves the last picture as text, so that it stays when the terminal is its owner's again.
func (l *liveTable) showEnding(cause string) {
	close(l.stop)
	<-l.stopped
	width, _ := l.size()
	l.mu.Lock()
	f := l.newFrame(time.Now(), width, 0)
	f.foot, f.intro = nil, ""
	l.board.silent = true
	lines := f.renderLines()
	n := len(l.board.servers)
	l.mu.Unlock()
	l.out.printText(ansiLeave + strings.Join(lines, "\n") + "\n")
	l.log.releaseLines()
	l.out.printText(fmt.Sprintf("%s; ending %s (Ctrl-C again ends them at once)\n", cause, countOf(n, "server")))
}

func (l *liveTable) showEnded(took time.Duration) {
	l.out.printText("ended in " + shortDuration(took) + "\n")
}

// pausableWriter is a writer that holds back what is written, up to a bound, while something else has the terminal.
type pausableWriter struct {
	w io.Writer

	mu     sync.Mutex
	paused bool
	lines  [][]byte
	lost   int
}

// Fd makes the log choose the form for people.
func (a *pausableWriter) Fd() uintptr {
	if f := fileOf(a.w); f != nil {
		return f.Fd()
	}
	return ^uintptr(0)
}

func (a *pausableWriter) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.paused {
		return a.w.Write(p)
	}
	if len(a.lines) >= logKept {
		a.lines, a.lost = slices.Delete(a.lines, 0, 1), a.lost+1
	}
	a.lines = append(a.lines, bytes.Clone(p))
	return len(p), nil
}

func (a *pausableWriter) pauseOutput() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.paused = true
}

func (a *pausableWriter) releaseLines() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.paused = false
	if a.lost > 0 {
		fmt.Fprintf(a.w, "mcpvisor: %s of the log are not shown\n", countOf(a.lost, "line"))
	}
	for _, p := range a.lines {
		_, _ = a.w.Write(p) // there is nobody else to be told
	}
	a.lines = nil
}
