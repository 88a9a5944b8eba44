package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// previewInterval is how often a list that is not complete is drawn again.
const previewInterval = 200 * time.Millisecond

// preview shows on a terminal which servers are settled, as long as others are waited for. It is gone when the list is printed.
type preview struct {
	out  io.Writer
	size func() (width, height int)

	mu    sync.Mutex
	drawn int    // lines that stand there
	shown string // what they say
	ended bool
	// settled is what servers were when they had last come to an end: one that has failed is on its way again a moment later.
	settled map[string]messages.Status
}

// startPreview shows the servers of p until the result is called. Elsewhere than on a terminal it does nothing.
func (p *project) startPreview(ctx context.Context) (end func()) {
	if !isTerminal(p.out) || p.quiet || os.Getenv("TERM") == "dumb" {
		return func() {}
	}
	v := &preview{out: p.out, settled: map[string]messages.Status{}, size: func() (int, int) {
		if f := fileOf(p.out); f != nil {
			if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
				return w, h
			}
		}
		return 80, 24
	}}
	if p.prompter != nil {
		p.prompter.withTerminal = v.withTerminal
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

// draw shows what is settled, and who is waited for. Nothing is shown before something is settled, or when nobody is waited for.
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
		word, _ := phaseOf(st)
		line := fmt.Sprintf("%-20s %-11s ", messages.Line(st.Name, 20), word)
		if room := width - 1 - len([]rune(line)); room > 1 {
			line += messages.Line(detailOf(st, now), room)
		}
		lines = append(lines, strings.TrimRight(line, " "))
	}
	if v.ended || len(lines) == 0 || len(pending) == 0 {
		return
	}
	if most := max(height-2, 1); len(lines) > most {
		lines = append(lines[:most-1], fmt.Sprintf("… and %d more", len(lines)-most+1))
	}
	lines = append(lines, messages.Line("waiting for "+joinNames(pending)+" (--wait bounds it)", width-1))
	text := strings.Join(lines, "\n") + "\n"
	if v.drawn > 0 && text == v.shown {
		return
	}
	fmt.Fprint(v.out, v.rewindCode()+text)
	v.drawn, v.shown = len(lines), text
}

// rewindCode goes back to where the lines begin, and takes them away.
func (v *preview) rewindCode() string {
	if v.drawn == 0 {
		return ""
	}
	return fmt.Sprintf("\x1b[%dA\r\x1b[J", v.drawn)
}

func (v *preview) clear(final bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended = v.ended || final
	if v.drawn > 0 {
		fmt.Fprint(v.out, v.rewindCode())
		v.drawn = 0
	}
}

// withTerminal lets a question have the terminal: nothing is drawn meanwhile.
func (v *preview) withTerminal(f func()) {
	v.clear(false)
	v.mu.Lock()
	defer v.mu.Unlock()
	f()
}
