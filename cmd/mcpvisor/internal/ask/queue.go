package ask

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

// promptKind is a kind of question at the terminal. Each kind has its own limits, so that questions of servers can never keep
// the person from being asked whether a call may be made.
type promptKind uint8

const (
	// serverPrompt is a question of a server: a form, a page, or the use of the model.
	serverPrompt promptKind = iota
	// callPrompt is the question whether a call may be made. Callers cause it; servers cannot.
	callPrompt
	// commandPrompt is a question of a command of the person, such as an approval.
	commandPrompt
)

// queueLimits bounds how many questions of a kind may wait or be open: for one server, and for all. A question beyond the bound
// is refused at once with an error that wraps messages.ErrNotShown. Servers get two, because they ask in bursts only when
// something is wrong; calls get more, because an agent may make many at once.
var queueLimits = [...]struct{ one, all int }{serverPrompt: {2, 16}, callPrompt: {16, 64}, commandPrompt: {16, 64}}

// promptQueue decides whose question has the terminal next: one at a time. Questions of one server and kind wait in one line in
// their order, and the lines take turns, so that neither a server that asks often nor an agent that calls often delays the
// others. It is safe for concurrent use; the zero value is ready.
//
//	order:   [A calls] [B forms]            lines with waiting questions; the first is next
//	waiting: A calls: q1 q2   B forms: q3   after q1, A's line goes behind B's
type promptQueue struct {
	// mu guards all fields below it.
	mu sync.Mutex
	// busy is true while a question has the terminal.
	busy        bool
	waiting     map[queueKey][]chan struct{} // the questions of each line, the oldest first
	order       []queueKey                   // the lines that are not empty, the next one first
	taken       map[queueKey]int             // by line: questions that wait or have the terminal
	takenByKind [len(queueLimits)]int
}

// queueKey names a line of the queue.
type queueKey struct {
	server string
	kind   promptKind
}

// waitTurn waits until the question has the terminal. The caller must call end to give the terminal up. The error says that the
// queue is full or ctx has ended first; it wraps messages.ErrNotShown.
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

// joinQueue takes a place in the line, or refuses if the line or the kind is full. ready is closed when it is this question's
// turn.
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

// endTurn ends the turn of a question and begins that of the next line's first question. That line then goes to the end of the
// order if more of its questions wait.
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

// withdrawPrompt removes a question that was cancelled while it waited.
func (t *promptQueue) withdrawPrompt(line queueKey, ready chan struct{}) {
	t.mu.Lock()
	i := slices.Index(t.waiting[line], ready)
	// Not in its line any more: endTurn gave it the terminal at the same moment, and it must pass the turn on.
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

// freePlace frees the place of a question in the counts. The caller holds mu.
func (t *promptQueue) freePlace(line queueKey) {
	t.takenByKind[line.kind]--
	if t.taken[line]--; t.taken[line] == 0 {
		delete(t.taken, line)
	}
}

// notShownError returns the error of a question that reached no person; errors.Is finds messages.ErrNotShown in it.
func notShownError(reason string) error {
	return &messages.Error{Op: "ask", Class: messages.ClassDenied, Text: "the question was not shown: " + reason,
		Err: messages.ErrNotShown}
}
