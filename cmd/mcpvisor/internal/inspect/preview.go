package inspect

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/status"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// previewInterval is the time between two drawings of a list that is not complete.
const previewInterval = 200 * time.Millisecond

// preview shows on a terminal which servers are settled while others are waited for. It is removed before the list is printed.
// It exists because list waits for the slowest server, and a person wants to see the others.
type preview struct {
	out io.Writer
	// size returns the size of the terminal in characters; it is asked at each drawing, because the person may resize the
	// window.
	size func() (width, height int)

	// mu guards the fields below, and is held while something is written to out.
	mu    sync.Mutex
	drawn int    // number of lines that stand on the terminal
	shown string // their text; the same text is not drawn again
	ended bool   // the list follows, so that nothing more is drawn
	// settled holds the status with which each server last settled, by name: a server that has failed is pending again a moment
	// later, and should still be shown as failed.
	settled map[string]messages.Status
}

// startPreview shows the servers of p until the caller calls end, which removes the preview and waits for its goroutine. On
// anything but a terminal, and with --quiet, it does nothing.
func startPreview(ctx context.Context, p *project.Project) (end func()) {
	if !terminal.IsTerminal(p.Options.Out) || p.Options.Quiet || os.Getenv("TERM") == "dumb" {
		return func() {}
	}
	v := &preview{out: p.Options.Out, settled: map[string]messages.Status{}, size: func() (int, int) {
		if f := terminal.FileOf(p.Options.Out); f != nil {
			if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
				return w, h
			}
		}
		return 80, 24 // the size that terminals have by convention
	}}
	// A question of a server must not be drawn over.
	if p.Options.Prompter != nil {
		p.Options.Prompter.WithTerminal = v.withTerminal
	}
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }() // the list is printed all the same
		t := time.NewTicker(previewInterval)
		defer t.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case now := <-t.C:
				// An error is not reported here: the command's own wait meets the same error and ends with it.
				if all, err := p.Status(ctx, control.StatusQuery{}); err == nil {
					v.draw(all, now)
				}
			}
		}
	}()
	return func() {
		stop()
		<-done
		v.clear(true)
	}
}

// draw shows the settled servers, and below them the names of those that are waited for. It shows nothing before the first
// server has settled, or when none is waited for: a fast list would only flicker.
func (v *preview) draw(all []messages.Status, now time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	var lines, pending []string
	width, height := v.size()
	for _, st := range all {
		last, was := v.settled[st.Name]
		switch {
		case st.Status != messages.Pending || st.Step == messages.Idle:
			v.settled[st.Name] = st
		case was:
			st = last
		default:
			pending = append(pending, messages.Line(st.Name, 40))
			continue
		}
		word, _ := status.PhaseOf(st)
		line := fmt.Sprintf("%-20s %-11s ", messages.Line(st.Name, 20), word)
		if room := width - 1 - len([]rune(line)); room > 1 {
			line += messages.Line(status.DetailOf(st, now), room)
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	if v.ended || len(lines) == 0 || len(pending) == 0 {
		return
	}
	// One line is for the names, and one stays empty, so that the terminal does not scroll.
	if most := max(height-2, 1); len(lines) > most {
		lines = append(lines[:most-1], fmt.Sprintf("… and %d more", len(lines)-most+1))
	}
	lines = append(lines, messages.Line("waiting for "+terminal.JoinNames(pending)+" (--wait bounds it)", width-1))
	text := strings.Join(lines, "\n") + "\n"
	if v.drawn > 0 && text == v.shown {
		return
	}
	fmt.Fprint(v.out, v.rewindCode()+text)
	v.drawn, v.shown = len(lines), text
}

// rewindCode returns the control sequence that goes back to the first line of the preview and clears to the end of the screen.
func (v *preview) rewindCode() string {
	if v.drawn == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA\r\x1b[J", v.drawn)
}

// clear removes the preview. final says that it will not be drawn again.
func (v *preview) clear(final bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended = v.ended || final
	if v.drawn > 0 {
		fmt.Fprint(v.out, v.rewindCode())
		v.drawn = 0
	}
}

// withTerminal calls f, which asks the person something, while nothing is drawn: drawing needs the lock that it holds.
func (v *preview) withTerminal(f func()) {
	v.clear(false)
	v.mu.Lock()
	defer v.mu.Unlock()
	f()
}
