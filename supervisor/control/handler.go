package control

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// The conversation on the socket is HTTP/1.1, whose bodies are messages of the vocabulary. A command is a POST to commandPath and
// its name, with its protobuf form as the body. Its answer is a stream of frames with status 200, of which the last one is its
// reply or a Failure; a command that fails before it has sent anything is answered with status 422 and a Failure alone.
var commandPath = fmt.Sprintf("/v%d/", Protocol)

const (
	// pathGreeting is answered with a greeting by every version of mcpvisor, whatever protocol it speaks otherwise.
	pathGreeting = "/v1/hello"
	// headerTimeout bounds the request, in milliseconds, so that the answering side reports what was not done in time.
	headerTimeout = "Mcpvisor-Timeout"
	// maxCommand bounds a command in bytes: the arguments of a call, or the answer to a form.
	maxCommand = 64 << 20
)

// A greeting says which protocol a process speaks. Its path and its members are the same in all versions, so that two of them can
// refuse each other by name.
type greeting struct {
	Protocol int    `json:"protocol"`
	PID      int    `json:"pid"`
	Version  string `json:"version"`
}

// handler answers the requests on a socket.
type handler struct {
	backend   Backend
	onRefused func(server, text string)
	questions openQuestions // of all callers of this socket
	ending    atomic.Bool   // after Quiesce: new requests are refused
	active    atomic.Int64  // requests that are being answered
}

// ServeHTTP authorizes the peer, reads its command and sends the answer. The order matters: a panic of the authorization is
// answered as well, and a peer without the right learns nothing else.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.active.Add(1)
	defer h.active.Add(-1)
	x := &exchange{backend: h.backend, questions: &h.questions, request: r.Context(), w: w}
	defer func() { // the outcome is unknown: the call may have run
		if p := recover(); p != nil {
			x.fail(panicError(p))
		}
	}()
	name, ours := strings.CutPrefix(r.URL.Path, commandPath)
	row, known := commands[name]
	ours = ours && r.Method == http.MethodPost
	// Only an answer belongs to a request that goes on.
	if h.ending.Load() && name != "AnswerQuestion" {
		x.fail(&messages.Error{Op: "control", Outcome: messages.OutcomeNotSent, Class: messages.ClassCanceled,
			Text: "what keeps the servers of this project is ending", Err: messages.ErrClosed})
		return
	}
	ctx, err := authorizePeer(r.Context(), row.reads || !ours, h.onRefused)
	switch {
	case err != nil:
		x.fail(err)
	case !ours:
		greet(w, r)
	case !known:
		x.fail(&messages.Error{Op: "control", Outcome: messages.OutcomeNotSent, Class: messages.ClassUnsupported,
			Text: fmt.Sprintf("the control socket takes no command %q", messages.Line(name, maxName))})
	default:
		x.request = ctx
		x.answer(ctx, w, r, name, row)
	}
}

// greet answers every request that is not of this protocol. Only the greeting's own path is a success, so that a command of
// another protocol fails at its sender.
func greet(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path != pathGreeting {
		w.WriteHeader(http.StatusNotFound)
	}
	_ = json.NewEncoder(w).Encode(greeting{Protocol, os.Getpid(), supervisor.Version()}) // an error means that the peer has gone
}

// answer reads a command, runs it and ends its answer.
func (x *exchange) answer(ctx context.Context, w http.ResponseWriter, r *http.Request, name string, row command) {
	ctx, cancel := withRequestTimeout(ctx, r)
	defer cancel()
	// The whole body is read before the first frame: net/http may close it once the answer has begun.
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCommand))
	if err != nil {
		x.fail(&messages.Error{Op: "control", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid,
			Text: fmt.Sprintf("the command did not arrive; at most %d MiB are accepted", maxCommand>>20), Err: err})
		return
	}
	c := newMessage(name)
	if err := proto.Unmarshal(body, c); err != nil {
		e := malformedError("command", name)
		e.Outcome = messages.OutcomeNotSent
		x.fail(e)
		return
	}
	reply, err := row.answer(ctx, x, c)
	if err != nil {
		x.fail(err)
		return
	}
	x.end(reply)
}

// withRequestTimeout bounds a context by the time that the peer gives.
func withRequestTimeout(ctx context.Context, r *http.Request) (context.Context, context.CancelFunc) {
	// A header that cannot be read counts as none: the peer then ends the request by going away.
	if ms, err := strconv.ParseInt(r.Header.Get(headerTimeout), 10, 64); err == nil {
		return context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
	}
	return context.WithCancel(ctx)
}

// malformedError returns the error of a value on the socket that cannot be read.
func malformedError(name, value string) *messages.Error {
	return &messages.Error{Op: "control", Class: messages.ClassInvalid,
		Text: fmt.Sprintf("%s %q on the control socket is malformed", name, messages.Line(value, 40))}
}

// panicError returns the error of a request that a panic has ended; its outcome is unknown.
func panicError(p any) error {
	return &messages.Error{Op: "control", Outcome: messages.OutcomeUnknown, Class: messages.ClassPanic,
		Text: "a defect of mcpvisor ended the request: " + messages.Line(fmt.Sprint(p), 200)}
}
