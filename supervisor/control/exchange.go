package control

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
)

// maxQueuedProgress bounds the progress notifications that wait for a caller that reads slowly; more are dropped.
const maxQueuedProgress = 64

// contentType is that of every answer of this protocol; another program, or another version of this one, has another.
const contentType = "application/vnd.mcpvisor.messages"

// An exchange is one command and its answer, on the answering side. It is safe for concurrent use: progress and questions come from
// other goroutines than the reply.
type exchange struct {
	backend   Backend
	questions *openQuestions
	request   context.Context // of the HTTP request: it ends when the caller goes away, and knows the peer

	mu sync.Mutex // held for one whole frame
	w  http.ResponseWriter
	// begun is set with the first frame, with which the status is decided, ended after the last one.
	begun, ended bool
}

// errEnded is the error of a message that comes after the end of the answer: a question that is withdrawn too late.
var errEnded = errors.New("the answer has ended")

// send writes a message and flushes it. An error means that the caller has gone.
func (x *exchange) send(m proto.Message) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.write(m, http.StatusOK)
}

// end sends the last message. Nothing is written after it: net/http forbids that when the handler has returned.
func (x *exchange) end(m proto.Message) {
	x.mu.Lock()
	defer x.mu.Unlock()
	_ = x.write(m, http.StatusOK) // an error means that the peer has gone
	x.ended = true
}

// fail ends the answer with a failure: as the whole answer if nothing of it was sent before, else as its last message.
func (x *exchange) fail(err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	_ = x.write(messages.FailureOf(err), http.StatusUnprocessableEntity) // an error means that the peer has gone
	x.ended = true
}

// write writes a message; status is that of an answer that begins with it. The caller holds mu.
func (x *exchange) write(m proto.Message, status int) error {
	if x.ended {
		return errEnded
	}
	if !x.begun {
		x.begun = true
		x.w.Header().Set("Content-Type", contentType)
		x.w.WriteHeader(status)
	}
	if err := writeFrame(x.w, m); err != nil {
		return err
	}
	return http.NewResponseController(x.w).Flush()
}

// hookedCommand is a command whose caller may want to learn of it while it runs.
type hookedCommand interface {
	GetProgress() bool
	GetMeta() []byte
	GetAsks() bool
}

// openHooks returns the hooks that the caller of a command has announced in it. The caller must call done before it sends the
// reply: it waits until the queued progress is written, so that progress comes before the reply.
func (x *exchange) openHooks(c hookedCommand) (a CallHooks, done func()) {
	a.Meta = c.GetMeta()
	if c.GetAsks() {
		a.Ask = x.elicitVia()
	}
	if !c.GetProgress() {
		return a, func() {}
	}
	// Progress goes through a queue to a goroutine of its own, which writes while the call runs.
	reports, written := make(chan messages.Progress, maxQueuedProgress), make(chan struct{})
	go func() { // it ends with done, which closes reports
		defer close(written)
		for p := range reports {
			_ = x.send(p.ToProto("")) // an error means that the peer has gone
		}
	}()
	// A caller that reads slowly must not hold up the session that reports the progress.
	a.Progress = func(p messages.Progress) {
		select {
		case reports <- p:
		default:
		}
	}
	return a, func() {
		close(reports)
		<-written
	}
}
