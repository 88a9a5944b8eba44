package up

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

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/inspect"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

const (
	// frameTime is the least time between two frames.
	frameTime = 100 * time.Millisecond
	// logKept is the number of lines of the log that are kept until the table is gone; older ones are dropped and counted.
	logKept = 200
)

// liveTable is a display for a person: a table on the terminal that is kept up to date. Its goroutine, paintLoop, is the only
// writer to the terminal between beginRun and showEnding.
type liveTable struct {
	run *upRun
	out *displayWriter
	// size returns the size of the terminal in characters; 80 by 24 if it is not known.
	size  func() (width, height int)
	began time.Time
	m     statusSource
	// log holds back standard error while the table is shown.
	log *pausableWriter

	// mu guards the fields below, up to stop. It is never held while something is written to the terminal.
	mu    sync.Mutex
	board *board
	// dirty says that an event has changed the board since the last frame.
	dirty bool
	// problems lists what is wrong with the configuration since the last reload; the first stands in the foot.
	problems []string
	// restart lists the keys of the files that count only from the next start of up on.
	restart []string
	// drawn is the text of the last frame; an equal one is not drawn again.
	drawn string

	// stop ends paintLoop, stopped is closed when it has ended.
	stop, stopped chan struct{}
	// terminalJobs hands functions that need the terminal to paintLoop. It is unbuffered.
	terminalJobs chan func()
}

// faultColour marks what is wrong with the configuration.
var faultColour = text.Colors{text.FgYellow}

// newLiveTable returns the display for a terminal. The size is asked anew for each frame, because the person may resize it.
func newLiveTable(r *upRun, out *displayWriter, b *board) *liveTable {
	size := func() (int, int) { return 80, 24 }
	if f := terminal.FileOf(r.options.Out); f != nil {
		size = func() (int, int) {
			w, h, err := term.GetSize(int(f.Fd()))
			if err != nil || w <= 0 || h <= 0 {
				return 80, 24
			}
			return w, h
		}
	}
	return &liveTable{run: r, out: out, board: b, size: size, log: &pausableWriter{w: r.options.Err},
		stop: make(chan struct{}), stopped: make(chan struct{}), terminalJobs: make(chan func())}
}

// wrapOptions sends standard error through log if it is the same terminal; it would land in the middle of the table.
func (l *liveTable) wrapOptions(o *cli.Options) *cli.Options {
	if !terminal.IsTerminal(o.Err) {
		return o
	}
	quiet := *o
	quiet.Err = l.log
	return &quiet
}

// beginRun shows the table. The notes come first in the list of events, because standard error is held back.
func (l *liveTable) beginRun(m statusSource) {
	l.m, l.began = m, time.Now()
	for _, text := range l.run.notes {
		l.board.addEvent(eventLine{at: l.began, text: text})
	}
	l.log.pauseOutput()
	l.out.printText(terminal.AnsiEnter)
	go l.paintLoop()
}

// paintLoop draws at most once in frameTime, when something has changed or a second has passed, since countdowns change then.
// It also runs what needs the terminal: a suspension with Ctrl-Z, and questions.
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
			// Zero makes the next tick draw.
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

// withoutTable calls f with the terminal as it was before the table, and forces a full frame afterwards.
func (l *liveTable) withoutTable(f func()) {
	l.out.printText(terminal.AnsiLeave)
	f()
	l.out.printText(terminal.AnsiEnter)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drawn = ""
}

// withTerminal hands f to paintLoop and waits for it. If paintLoop has ended, the terminal is free and f is called here.
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

// drawFrame draws the board as it is now. The text is built with the lock and written without it.
func (l *liveTable) drawFrame(now time.Time, width, height int) {
	l.mu.Lock()
	f := l.newFrame(now, width, height)
	picture := terminal.AnsiClear + strings.Join(f.renderLines(), "\r\n"+terminal.AnsiClear)
	changed := picture != l.drawn
	l.drawn = picture
	l.mu.Unlock()
	if changed {
		l.out.printText(terminal.AnsiHome + picture + terminal.AnsiDone)
	}
}

// newFrame returns the frame for a size; the caller holds mu. height 0 shows all rows, for the last picture.
func (l *liveTable) newFrame(now time.Time, width, height int) *frame {
	f := &frame{board: l.board, now: now, width: width, height: height, coloured: terminal.UsesColours(l.run.options.Out)}
	f.head = append(f.head, f.paintText(text.Colors{text.Bold}, "mcpvisor "+supervisor.Version())+
		" · "+l.run.projectText()+" · "+now.Sub(l.began).Round(time.Second).String(), l.board.phaseSummary())
	if f.intro = l.run.intro; len(l.board.servers) == 0 && l.run.emptyText != "" {
		f.intro = l.run.emptyText
	}
	if c := l.board.totalCalls(); c.total() > 0 {
		f.head = append(f.head, "calls: "+c.String())
	}
	f.foot = []string{f.paintText(text.Colors{text.Faint},
		l.run.keysText()+" · in another terminal: mcpvisor why SERVER")}
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
		if trouble := inspect.AuditTrouble(l.m.AuditStats()); trouble != "" {
			f.foot = append(f.foot, f.paintText(faultColour, messages.Line(trouble, width)))
		}
	}
	return f
}

// showEvent updates the board; the next tick draws it.
func (l *liveTable) showEvent(e messages.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	recordEvent(l.board, l.m, e)
	l.dirty = true
}

// countCall counts a call of the demo.
func (l *liveTable) countCall(server string, o messages.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.board.countCall(server, o)
	l.dirty = true
}

// showReload adds a line, and keeps what is wrong in the foot until a reload without it.
func (l *liveTable) showReload(res supervisor.ReloadResult) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.board.addEvent(eventLine{at: time.Now(), text: "configuration: " + reloadText(res)})
	l.problems, l.restart = reloadProblems(res), res.Restart
	l.dirty = true
}

// showEnding ends the table and prints the last picture as text, so that it stays on the person's screen. Then it prints the
// lines of the log that were held back.
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
	l.out.printText(terminal.AnsiLeave + strings.Join(lines, "\n") + "\n")
	l.log.releaseLines()
	l.out.printText(cause + "; " + l.run.endText(n) + l.run.secondInterruptText() + "\n")
}

// showEnded prints how long the end took.
func (l *liveTable) showEnded(took time.Duration) {
	l.out.printText("ended in " + terminal.ShortDuration(took) + "\n")
}

// pausableWriter is a writer that holds lines back while it is paused, at most logKept. It is safe for concurrent use.
type pausableWriter struct {
	w io.Writer

	mu     sync.Mutex
	paused bool
	lines  [][]byte
	lost   int // number of lines that were dropped while paused
}

// Fd returns the descriptor behind the writer, so that the log chooses its form for people.
func (a *pausableWriter) Fd() uintptr {
	if f := terminal.FileOf(a.w); f != nil {
		return f.Fd()
	}
	return ^uintptr(0)
}

// Write writes through, or keeps a copy while paused and drops the oldest line if there are too many.
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

// pauseOutput holds back what is written from now on.
func (a *pausableWriter) pauseOutput() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.paused = true
}

// releaseLines writes what was held back, and how many lines are missing, and ends the pause.
func (a *pausableWriter) releaseLines() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.paused = false
	if a.lost > 0 {
		fmt.Fprintf(a.w, "mcpvisor: %s of the log are not shown\n", terminal.CountOf(a.lost, "line"))
	}
	for _, p := range a.lines {
		_, _ = a.w.Write(p) // standard error is the only place for an error
	}
	a.lines = nil
}
