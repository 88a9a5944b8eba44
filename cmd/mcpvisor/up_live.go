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

// live is a display for a person: a table that is kept up to date on the terminal.
type live struct {
	run   *upRun
	out   *output
	size  func() (width, height int)
	began time.Time
	m     *supervisor.Manager
	log   *aside

	mu    sync.Mutex
	board *board
	dirty bool
	// faults are what is wrong with the configuration.
	faults []string
	// restart are the keys of the files that count from the next start on.
	restart []string
	// drawn is the last picture, to leave the terminal alone when nothing has changed.
	drawn string

	stop, stopped chan struct{}
	// turns are what wants the terminal for itself.
	turns chan func()
}

// faultColour is that of what is wrong with the configuration.
var faultColour = text.Colors{text.FgYellow}

func newLive(r *upRun, out *output, b *board) *live {
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
	return &live{run: r, out: out, board: b, size: size, log: &aside{w: r.err},
		stop: make(chan struct{}), stopped: make(chan struct{}), turns: make(chan func())}
}

// options keeps what is written to standard error until the picture is gone, if it would land in it.
func (l *live) options(o *options) *options {
	if !isTerminal(o.err) {
		return o
	}
	quiet := *o
	quiet.err = l.log
	return &quiet
}

func (l *live) begin(m *supervisor.Manager) {
	l.m, l.began = m, time.Now()
	for _, text := range l.run.notes {
		l.board.tell(headline{at: l.began, text: text})
	}
	l.log.hold()
	l.out.print(ansiEnter)
	go l.paint()
}

// paint draws until ending. It is the only one who writes to the terminal meanwhile.
func (l *live) paint() {
	defer close(l.stopped)
	defer l.run.catch()
	t := time.NewTicker(frameTime)
	defer t.Stop()
	suspended, end := suspensions()
	defer end()
	width, height, second := 0, 0, int64(0)
	for {
		select {
		case <-suspended:
			l.without(suspend)
			second = 0
		case f := <-l.turns:
			l.without(f)
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
				l.draw(now, w, h)
			}
		}
	}
}

// without gives f the terminal as it was before the picture.
func (l *live) without(f func()) {
	l.out.print(ansiLeave)
	f()
	l.out.print(ansiEnter)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.drawn = ""
}

// alone waits for the goroutine that draws. When that has ended the terminal is nobody's.
func (l *live) alone(f func()) {
	done := make(chan struct{})
	turn := func() {
		defer close(done)
		f()
	}
	select {
	case l.turns <- turn:
		<-done
	case <-l.stopped:
		f()
	}
}

func (l *live) draw(now time.Time, width, height int) {
	l.mu.Lock()
	f := l.frame(now, width, height)
	picture := ansiClear + strings.Join(f.lines(), "\r\n"+ansiClear)
	changed := picture != l.drawn
	l.drawn = picture
	l.mu.Unlock()
	if changed {
		l.out.print(ansiHome + picture + ansiDone)
	}
}

func (l *live) frame(now time.Time, width, height int) *frame {
	f := &frame{board: l.board, now: now, width: width, height: height, coloured: coloured(l.run.out)}
	f.head = append(f.head, f.paint(text.Colors{text.Bold}, "mcpvisor "+supervisor.Version())+
		" · "+l.run.where()+" · "+now.Sub(l.began).Round(time.Second).String(), l.board.summary())
	if f.intro = l.run.intro; len(l.board.servers) == 0 && l.run.waiting != "" {
		f.intro = l.run.waiting
	}
	if c := l.board.calls(); c.total() > 0 {
		f.head = append(f.head, "calls: "+c.String())
	}
	f.foot = []string{f.paint(text.Colors{text.Faint},
		"Ctrl-C ends the servers and mcpvisor · in another terminal: mcpvisor why SERVER")}
	if n := len(l.faults); n > 0 {
		first := l.faults[0]
		if n > 1 {
			first += fmt.Sprintf(" (and %d more: mcpvisor config check)", n-1)
		}
		f.foot = append(f.foot, f.paint(faultColour, messages.Line(first, width)))
	}
	if len(l.restart) > 0 {
		f.foot = append(f.foot, f.paint(faultColour, messages.Line(restartWords(l.restart), width)))
	}
	if l.m != nil {
		if trouble := auditTrouble(l.m.AuditStats()); trouble != "" {
			f.foot = append(f.foot, f.paint(faultColour, messages.Line(trouble, width)))
		}
	}
	return f
}

func (l *live) event(e messages.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	follow(l.board, l.m, e)
	l.dirty = true
}

func (l *live) called(server string, o messages.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.board.called(server, o)
	l.dirty = true
}

// reloaded tells it among the news, and what is wrong stays in the foot until it is mended.
func (l *live) reloaded(res supervisor.ReloadResult) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.board.tell(headline{at: time.Now(), text: "configuration: " + reloadWords(res)})
	l.faults, l.restart = reloadFaults(res), res.Restart
	l.dirty = true
}

// ending leaves the last picture as text, so that it stays when the terminal is its owner's again.
func (l *live) ending(why string) {
	close(l.stop)
	<-l.stopped
	width, _ := l.size()
	l.mu.Lock()
	f := l.frame(time.Now(), width, 0)
	f.foot, f.intro = nil, ""
	l.board.silent = true
	lines := f.lines()
	n := len(l.board.servers)
	l.mu.Unlock()
	l.out.print(ansiLeave + strings.Join(lines, "\n") + "\n")
	l.log.release()
	l.out.print(fmt.Sprintf("%s; ending %s (Ctrl-C again ends them at once)\n", why, count(n, "server")))
}

func (l *live) end(took time.Duration) { l.out.print("ended in " + shortly(took) + "\n") }

// aside is a writer that holds back what is written, up to a bound, while something else has the terminal.
type aside struct {
	w io.Writer

	mu    sync.Mutex
	held  bool
	lines [][]byte
	lost  int
}

// Fd makes the log choose the form for people.
func (a *aside) Fd() uintptr {
	if f := fileOf(a.w); f != nil {
		return f.Fd()
	}
	return ^uintptr(0)
}

func (a *aside) Write(p []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.held {
		return a.w.Write(p)
	}
	if len(a.lines) >= logKept {
		a.lines, a.lost = slices.Delete(a.lines, 0, 1), a.lost+1
	}
	a.lines = append(a.lines, bytes.Clone(p))
	return len(p), nil
}

func (a *aside) hold() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held = true
}

func (a *aside) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.held = false
	if a.lost > 0 {
		fmt.Fprintf(a.w, "mcpvisor: %s of the log are not shown\n", count(a.lost, "line"))
	}
	for _, p := range a.lines {
		_, _ = a.w.Write(p) // there is nobody else to be told
	}
	a.lines = nil
}
