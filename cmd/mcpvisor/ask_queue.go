package main

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

// promptKind is a kind of question at the terminal. Each kind has places of its own, so that what servers ask never keeps a
// person from being asked whether a call may be made.
type promptKind uint8

const (
	// serverPrompt: a form, a page, or the use of the model.
	serverPrompt promptKind = iota
	// callPrompt: may a call be made? Callers cause these, and no server can.
	callPrompt
	// commandPrompt: a question of a command of the person's own, such as an approval.
	commandPrompt
)

// queueLimits are how many questions of a kind may wait or be open, of one server and of all. A server's third question is
// refused at once: what a person cannot have seen yet needs no queue. Calls are many when an agent makes them at once.
var queueLimits = [...]struct{ one, all int }{serverPrompt: {2, 16}, callPrompt: {16, 64}, commandPrompt: {16, 64}}

// promptQueue decides whose question has the terminal next: one at a time, and those who wait take turns by server and kind,
// so that neither a server that asks often nor an agent that calls often is before the others. Safe for concurrent use;
// the zero value is ready.
type promptQueue struct {
	mu          sync.Mutex
	busy        bool
	waiting     map[queueKey][]chan struct{} // who waits, the first first
	order       []queueKey                   // the lines where somebody waits, the one that is next first
	taken       map[queueKey]int             // who waits and who is asked
	takenByKind [len(queueLimits)]int
}

type queueKey struct {
	server string
	kind   promptKind
}

// waitTurn waits for the terminal. end gives it up. An error wraps messages.ErrNotShown.
func (t *promptQueue) waitTurn(ctx context.Context, server string, kind promptKind) (end func(), err error) {
	line := queueKey{server, kind}
	ready, err := t.joinQueue(line)
	if err != nil {
		return nil, err
	}
	select {
	case <-ready:
		return func() { t.endTurn(line) }, nil
	case <-ctx.Done():
		t.withdrawPrompt(line, ready)
		return nil, notShownError("it was taken back before its turn")
	}
}

// joinQueue takes a place. ready is closed when it is this question's turn.
func (t *promptQueue) joinQueue(line queueKey) (ready chan struct{}, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	bound := queueLimits[line.kind]
	switch {
	case t.taken[line] >= bound.one:
		return nil, notShownError(fmt.Sprintf("%d questions of this kind wait for its server already", bound.one))
	case t.takenByKind[line.kind] >= bound.all:
		return nil, notShownError(fmt.Sprintf("%d questions wait already", bound.all))
	}
	if t.taken == nil {
		t.taken, t.waiting = map[queueKey]int{}, map[queueKey][]chan struct{}{}
	}
	t.taken[line]++
	t.takenByKind[line.kind]++
	ready = make(chan struct{})
	if !t.busy {
		t.busy = true
		close(ready)
		return ready, nil
	}
	if len(t.waiting[line]) == 0 {
		t.order = append(t.order, line)
	}
	t.waiting[line] = append(t.waiting[line], ready)
	return ready, nil
}

// endTurn ends the turn of a question, and begins the next one's.
func (t *promptQueue) endTurn(line queueKey) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.freePlace(line)
	t.busy = len(t.order) > 0
	if !t.busy {
		return
	}
	next := t.order[0]
	t.order = t.order[1:]
	close(t.waiting[next][0])
	if t.waiting[next] = t.waiting[next][1:]; len(t.waiting[next]) > 0 {
		t.order = append(t.order, next)
	} else {
		delete(t.waiting, next)
	}
}

// withdrawPrompt takes a question back. Its turn may have come at this moment.
func (t *promptQueue) withdrawPrompt(line queueKey, ready chan struct{}) {
	t.mu.Lock()
	i := slices.Index(t.waiting[line], ready)
	if i < 0 {
		t.mu.Unlock()
		t.endTurn(line)
		return
	}
	defer t.mu.Unlock()
	t.freePlace(line)
	if t.waiting[line] = slices.Delete(t.waiting[line], i, i+1); len(t.waiting[line]) == 0 {
		delete(t.waiting, line)
		t.order = slices.DeleteFunc(t.order, func(l queueKey) bool { return l == line })
	}
}

// freePlace gives a place free. The caller holds mu.
func (t *promptQueue) freePlace(line queueKey) {
	t.takenByKind[line.kind]--
	if t.taken[line]--; t.taken[line] == 0 {
		delete(t.taken, line)
	}
}

// notShownError is the error of a question that reached no person.
func notShownError(reason string) error {
	return &messages.Error{Op: "ask", Class: messages.ClassDenied, Text: "the question was not shown: " + reason,
		Err: messages.ErrNotShown}
}
