package control

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
)

// A frame is one line of a stream: a part of an answer. Exactly one member is set. A Result ends the stream, and its
// bytes follow the line; a Failure ends it too.
type frame struct {
	Progress *messages.Progress `json:"progress,omitempty"`
	Ask      *question          `json:"ask,omitempty"`
	// Withdrawn is the id of a question that needs no answer any more.
	Withdrawn string          `json:"withdrawn,omitempty"`
	Event     *messages.Event `json:"event,omitempty"`
	// Changed is true when the resource is watched from now on, or has changed.
	Changed bool     `json:"changed,omitempty"`
	Result  *result  `json:"result,omitempty"`
	Failure *failure `json:"failure,omitempty"`
}

// A question is a server's question to the person while the caller waits for its answer. The reply goes to pathAnswer
// with the same ID.
type question struct {
	// ID is chosen by the answering side, for this question alone.
	ID      string                 `json:"id"`
	Request messages.ElicitRequest `json:"request"`
}

// A result is the head of an answer: Bytes raw bytes follow its line, so that they need not be encoded as JSON.
type result struct {
	Bytes   int              `json:"bytes"`
	Outcome messages.Outcome `json:"outcome,omitempty"`
	Server  string           `json:"server,omitempty"`
	Name    string           `json:"name,omitempty"`
}

// The bounds of what a caller that does not read, or sends too much, can make this process hold.
const (
	// maxQueuedProgress bounds the progress notifications that wait for a caller that reads slowly; more are dropped.
	maxQueuedProgress = 64
	// maxAnswerBody bounds the answer to a question, in bytes.
	maxAnswerBody = 16 << 20
)

// A streamWriter writes the frames of one stream, on the answering side. It is safe for concurrent use: progress and
// questions come from other goroutines than the result.
type streamWriter struct {
	mu sync.Mutex // held for one whole frame
	w  http.ResponseWriter
}

// writeFrame writes a line, the bytes that belong to it, and flushes both. An error means that the caller has gone.
func (x *streamWriter) writeFrame(f frame, bytes []byte) error {
	// One Write for both parts: frames of several goroutines must not mix.
	line, err := json.Marshal(f)
	if err != nil {
		return err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if _, err := x.w.Write(append(append(line, '\n'), bytes...)); err != nil {
		return err
	}
	return http.NewResponseController(x.w).Flush()
}

// writeFailure ends the stream with a failure.
func (x *streamWriter) writeFailure(err error) {
	f := failureOf(err)
	_ = x.writeFrame(frame{Failure: &f}, nil) // an error means that the peer has gone
}

// elicitFunc answers a server's question.
type elicitFunc = func(context.Context, messages.ElicitRequest) (messages.ElicitResult, error)

// openQuestions are the questions that callers have not answered yet. The zero value is ready.
type openQuestions struct {
	waiting sync.Map // openQuestion by id
}

// An openQuestion waits for the answer of the process that was asked.
type openQuestion struct {
	process  string                     // fence.Peer.Process; empty if the system does not identify it
	answered chan messages.ElicitResult // capacity 1
}

// askOnStream returns a function that asks the caller of a stream. The id of a question holds 128 random bits, so
// another process cannot guess it, and acceptAnswer compares the process as well. The function returns when the
// answer has come, the caller has gone, or ctx has ended; then the question is withdrawn.
func (qs *openQuestions) askOnStream(x *streamWriter, stream context.Context) elicitFunc {
	process, streamDone := peerOf(stream).Process(), stream.Done()
	return func(ctx context.Context, r messages.ElicitRequest) (messages.ElicitResult, error) {
		id, answered := rand.Text(), make(chan messages.ElicitResult, 1)
		// The question is stored before it is sent, because its answer may come before writeFrame returns.
		qs.waiting.Store(id, openQuestion{process, answered})
		defer qs.waiting.Delete(id)
		if err := x.writeFrame(frame{Ask: &question{id, r}}, nil); err != nil {
			return messages.ElicitResult{}, err
		}
		select {
		// Every way out removes the question (the deferred Delete), so a late answer finds none.
		case res := <-answered:
			if res.Action == actionUnseen {
				return messages.ElicitResult{}, &messages.Error{Op: "elicit", Class: messages.ClassDenied,
					Text: "the caller could not show it", Err: messages.ErrNotShown}
			}
			return res, nil
		case <-streamDone:
			return messages.ElicitResult{}, &messages.Error{Op: "elicit", Class: messages.ClassCanceled,
				Text: "the caller went away"}
		case <-ctx.Done():
			_ = x.writeFrame(frame{Withdrawn: id}, nil) // an error means that the peer has gone
			return messages.ElicitResult{}, ctx.Err()
		}
	}
}

// acceptAnswer hands an answer to the question that waits for it. The first answer of the process that was asked
// counts; an answer to a question that is over is ignored without an error, because the caller could not know.
func (qs *openQuestions) acceptAnswer(from string, id string, res messages.ElicitResult) error {
	waiting, ok := qs.waiting.Load(id)
	if !ok {
		return nil
	}
	q := waiting.(openQuestion)
	// On systems that do not identify processes both are empty, and the id alone protects the question.
	if q.process != from {
		return &messages.Error{Op: "control", Class: messages.ClassDenied, Err: messages.ErrDenied,
			Text: "another process was asked this question"}
	}
	if _, ok := qs.waiting.LoadAndDelete(id); ok { // of two answers one wins, so that the channel has room
		q.answered <- res
	}
	return nil
}

// readHooks returns the hooks that the caller of a stream has announced in its query. The handler must call done
// before it writes the result: it waits until the queued progress is written, so that progress comes before the
// answer.
func (x *streamWriter) readHooks(r *http.Request, qs *openQuestions) (a CallHooks, done func()) {
	q := r.URL.Query()
	if meta := q.Get("meta"); meta != "" {
		a.Meta = json.RawMessage(meta)
	}
	if q.Get("ask") == "true" {
		a.Ask = qs.askOnStream(x, r.Context())
	}
	if q.Get("permit") == "true" {
		a.Permit = permitVia(qs.askOnStream(x, r.Context()))
	}
	if q.Get("progress") != "true" {
		return a, func() {}
	}
	// Progress goes through a queue to a goroutine of its own, which writes while the call runs.
	reports, written := make(chan messages.Progress, maxQueuedProgress), make(chan struct{})
	go func() { // it ends with done, which closes reports
		defer close(written)
		for p := range reports {
			_ = x.writeFrame(frame{Progress: &p}, nil) // an error means that the peer has gone
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

// addStreamRoutes adds the routes that answer in parts.
func addStreamRoutes(mux *http.ServeMux, b Backend) {
	qs := &openQuestions{} // of all streams of this socket
	stream := func(pattern string, f func(ctx context.Context, x *streamWriter, r *http.Request, body []byte)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := requestContext(r)
			defer cancel()
			// The whole body is read before the first frame: net/http may close it once the answer has begun.
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxArgs))
			if err != nil {
				writeError(w, &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid,
					Text: fmt.Sprintf("the arguments did not arrive; at most %d MiB are accepted", maxArgs>>20), Err: err})
				return
			}
			// From here on the status is 200, so an error can only be a frame.
			w.Header().Set("Content-Type", "application/x-ndjson")
			x := &streamWriter{w: w}
			defer func() { // the outcome is unknown: the call may have run
				if p := recover(); p != nil {
					x.writeFailure(panicError(p))
				}
			}()
			f(ctx, x, r, body)
		})
	}
	stream("POST "+pathCall, func(ctx context.Context, x *streamWriter, r *http.Request, body []byte) {
		q := r.URL.Query()
		// done runs before the result is written, and also if the backend panics.
		a, done := x.readHooks(r, qs)
		res, err := func() (Result, error) {
			defer done()
			return b.Call(ctx, Call{Qualified: q.Get("qualified"), Server: q.Get("server"), Tool: q.Get("tool"), Args: body, CallHooks: a})
		}()
		if err != nil {
			x.writeFailure(err)
			return
		}
		// A tool that failed has a result too; the outcome tells the client which it is.
		outcome := messages.OutcomeResult
		if res.IsError {
			outcome = messages.OutcomeToolError
		}
		_ = x.writeFrame(frame{Result: &result{Bytes: len(res.Raw), Outcome: outcome}}, res.Raw) // an error means that the peer has gone
	})
	stream("POST "+pathRead, func(ctx context.Context, x *streamWriter, r *http.Request, _ []byte) {
		q := r.URL.Query()
		a, done := x.readHooks(r, qs)
		res, err := func() (ReadResult, error) {
			defer done()
			return b.Read(ctx, Read{Server: q.Get("server"), URI: q.Get("uri"), CallHooks: a})
		}()
		if err != nil {
			x.writeFailure(err)
			return
		}
		_ = x.writeFrame(frame{Result: &result{Bytes: len(res.Raw), Server: res.Server}}, res.Raw) // an error means that the peer has gone
	})
	stream("POST "+pathFill, func(ctx context.Context, x *streamWriter, r *http.Request, body []byte) {
		q := r.URL.Query()
		f := Fill{Qualified: q.Get("qualified"), Server: q.Get("server"), Name: q.Get("name")}
		if err := json.Unmarshal(body, &f.Args); err != nil {
			x.writeFailure(malformedError("body", err.Error()))
			return
		}
		a, done := x.readHooks(r, qs)
		res, err := func() (FillResult, error) {
			defer done()
			f.CallHooks = a
			return b.Fill(ctx, f)
		}()
		if err != nil {
			x.writeFailure(err)
			return
		}
		_ = x.writeFrame(frame{Result: &result{Bytes: len(res.Raw), Server: res.Server, Name: res.Name}}, res.Raw) // an error means that the peer has gone
	})
	// Events are only read, so GET lets a peer with ReadOnly follow them. A watch subscribes at a server, so it is no
	// GET.
	stream("GET "+pathEvents, func(ctx context.Context, x *streamWriter, r *http.Request, _ []byte) {
		err := b.Follow(ctx, r.URL.Query().Get("server"), func(e messages.Event) error {
			return x.writeFrame(frame{Event: &e}, nil)
		})
		x.endWithoutResult(ctx, err)
	})
	stream("POST "+pathWatch, func(ctx context.Context, x *streamWriter, r *http.Request, _ []byte) {
		q := r.URL.Query()
		err := b.Watch(ctx, q.Get("server"), q.Get("uri"), func() error { return x.writeFrame(frame{Changed: true}, nil) })
		x.endWithoutResult(ctx, err)
	})
	mux.HandleFunc("POST "+pathAnswer, func(w http.ResponseWriter, r *http.Request) {
		var res messages.ElicitResult
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAnswerBody)).Decode(&res); err != nil {
			writeError(w, malformedError("answer", err.Error()))
			return
		}
		if err := qs.acceptAnswer(peerOf(r.Context()).Process(), r.URL.Query().Get("id"), res); err != nil {
			writeError(w, err)
			return
		}
		_, _ = io.WriteString(w, "{}") // an error means that the peer has gone
	})
}

// endWithoutResult ends a stream that has no result: with err, or with the reason that the manager has ended.
func (x *streamWriter) endWithoutResult(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil: // the caller has left, so there is no reader
	case err != nil:
		x.writeFailure(err)
	default:
		x.writeFailure(&messages.Error{Op: "watch", Class: messages.ClassCanceled, Text: "the mcpvisor up of this project ended"})
	}
}

// panicError returns the error of a request that a panic has ended; its outcome is unknown.
func panicError(p any) error {
	return &messages.Error{Op: "control", Outcome: messages.OutcomeUnknown, Class: messages.ClassPanic,
		Text: "a defect of mcpvisor ended the request: " + messages.Line(fmt.Sprint(p), 200)}
}
