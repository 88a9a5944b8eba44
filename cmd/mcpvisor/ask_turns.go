package main

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

// askKind is a kind of question at the terminal. Each kind has places of its own, so that what servers ask never keeps a
// person from being asked whether a call may be made.
type askKind uint8

const (
	// askedByServer: a form, a page, or the use of the model.
	askedByServer askKind = iota
	// askedForCall: may a call be made? Callers cause these, and no server can.
	askedForCall
	// askedByCommand: a question of a command of the person's own, such as an approval.
	askedByCommand
)

// places are how many questions of a kind may wait or be open, of one server and of all. A server's third question is
// refused at once: what a person cannot have seen yet needs no queue. Calls are many when an agent makes them at once.
var places = [...]struct{ one, all int }{askedByServer: {2, 16}, askedForCall: {16, 64}, askedByCommand: {16, 64}}

// turns decides whose question has the terminal next: one at a time, and those who wait take turns by server and kind,
// so that neither a server that asks often nor an agent that calls often is before the others. Safe for concurrent use;
// the zero value is ready.
type turns struct {
	mu    sync.Mutex
	open  bool
	lines map[turnLine][]chan struct{} // who waits, the first first
	order []turnLine                   // the lines where somebody waits, the one that is next first
	held  map[turnLine]int             // who waits and who is asked
	all   [len(places)]int
}

type turnLine struct {
	server string
	kind   askKind
}

// take waits for the terminal. end gives it up. An error wraps messages.ErrNotShown.
func (t *turns) take(ctx context.Context, server string, kind askKind) (end func(), err error) {
	line := turnLine{server, kind}
	ready, err := t.enter(line)
	if err != nil {
		return nil, err
	}
	select {
	case <-ready:
		return func() { t.leave(line) }, nil
	case <-ctx.Done():
		t.giveUp(line, ready)
		return nil, neverShown("it was taken back before its turn")
	}
}

// enter takes a place. ready is closed when it is this question's turn.
func (t *turns) enter(line turnLine) (ready chan struct{}, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	bound := places[line.kind]
	switch {
	case t.held[line] >= bound.one:
		return nil, neverShown(fmt.Sprintf("%d questions of this kind wait for its server already", bound.one))
	case t.all[line.kind] >= bound.all:
		return nil, neverShown(fmt.Sprintf("%d questions wait already", bound.all))
	}
	if t.held == nil {
		t.held, t.lines = map[turnLine]int{}, map[turnLine][]chan struct{}{}
	}
	t.held[line]++
	t.all[line.kind]++
	ready = make(chan struct{})
	if !t.open {
		t.open = true
		close(ready)
		return ready, nil
	}
	if len(t.lines[line]) == 0 {
		t.order = append(t.order, line)
	}
	t.lines[line] = append(t.lines[line], ready)
	return ready, nil
}

// leave ends the turn of a question, and begins the next one's.
func (t *turns) leave(line turnLine) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.gone(line)
	t.open = len(t.order) > 0
	if !t.open {
		return
	}
	next := t.order[0]
	t.order = t.order[1:]
	close(t.lines[next][0])
	if t.lines[next] = t.lines[next][1:]; len(t.lines[next]) > 0 {
		t.order = append(t.order, next)
	} else {
		delete(t.lines, next)
	}
}

// giveUp takes a question back. Its turn may have come at this moment.
func (t *turns) giveUp(line turnLine, ready chan struct{}) {
	t.mu.Lock()
	i := slices.Index(t.lines[line], ready)
	if i < 0 {
		t.mu.Unlock()
		t.leave(line)
		return
	}
	defer t.mu.Unlock()
	t.gone(line)
	if t.lines[line] = slices.Delete(t.lines[line], i, i+1); len(t.lines[line]) == 0 {
		delete(t.lines, line)
		t.order = slices.DeleteFunc(t.order, func(l turnLine) bool { return l == line })
	}
}

// gone gives a place free. The caller holds mu.
func (t *turns) gone(line turnLine) {
	t.all[line.kind]--
	if t.held[line]--; t.held[line] == 0 {
		delete(t.held, line)
	}
}

// neverShown is the error of a question that reached no person.
func neverShown(why string) error {
	return &messages.Error{Op: "ask", Class: messages.ClassDenied, Text: "the question was not shown: " + why,
		Err: messages.ErrNotShown}
}
