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

// frame is one line of a stream: an answer that comes in parts. One member is set. A Result ends the stream, and its
// bytes follow the line; a Failure ends it too.
type frame struct {
	Progress *messages.Progress `json:"progress,omitempty"`
	Ask      *question          `json:"ask,omitempty"`
	// Withdrawn is the id of a question that needs no answer any more.
	Withdrawn string          `json:"withdrawn,omitempty"`
	Event     *messages.Event `json:"event,omitempty"`
	// Changed: the resource is watched, or has changed.
	Changed bool     `json:"changed,omitempty"`
	Result  *result  `json:"result,omitempty"`
	Failure *failure `json:"failure,omitempty"`
}

// question is what a server asks while its answer is waited for. The answer goes to pathAnswer.
type question struct {
	ID      string                 `json:"id"`
	Request messages.ElicitRequest `json:"request"`
}

// result is the head of what a server answered: its bytes follow, as they are.
type result struct {
	Bytes   int              `json:"bytes"`
	Outcome messages.Outcome `json:"outcome,omitempty"`
	Server  string           `json:"server,omitempty"`
	Name    string           `json:"name,omitempty"`
}

const (
	// maxQueuedProgress is how many reports of progress may wait for a caller that reads slowly; more are dropped.
	maxQueuedProgress = 64
	// maxAnswerBody bounds the answer to a question, in bytes.
	maxAnswerBody = 16 << 20
)

// streamWriter is one stream, of the side that answers. Safe for concurrent use.
type streamWriter struct {
	mu sync.Mutex
	w  http.ResponseWriter
}

// writeFrame writes a line, and the bytes that belong to it. The error says that the caller is gone.
func (x *streamWriter) writeFrame(f frame, bytes []byte) error {
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

func (x *streamWriter) writeFailure(err error) {
	f := failureOf(err)
	_ = x.writeFrame(frame{Failure: &f}, nil) // the peer has gone: nobody is left to be told
}

// elicitFunc answers what a server asks.
type elicitFunc = func(context.Context, messages.ElicitRequest) (messages.ElicitResult, error)

// openQuestions are those that callers have not answered yet. The zero value is ready.
type openQuestions struct {
	waiting sync.Map // id → open
}

// openQuestion is a question that waits for the process that was asked.
type openQuestion struct {
	process  string // fence.Peer.Process; empty where the system does not tell
	answered chan messages.ElicitResult
}

// askOnStream puts a question to the caller of a stream. Its id holds 128 random bits: it cannot be guessed, and only who reads the
// stream is told.
func (qs *openQuestions) askOnStream(x *streamWriter, stream context.Context) elicitFunc {
	process, streamDone := peerOf(stream).Process(), stream.Done()
	return func(ctx context.Context, r messages.ElicitRequest) (messages.ElicitResult, error) {
		id, answered := rand.Text(), make(chan messages.ElicitResult, 1)
		qs.waiting.Store(id, openQuestion{process, answered})
		defer qs.waiting.Delete(id)
		if err := x.writeFrame(frame{Ask: &question{id, r}}, nil); err != nil {
			return messages.ElicitResult{}, err
		}
		select {
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
			_ = x.writeFrame(frame{Withdrawn: id}, nil) // the peer has gone: nobody is left to be told
			return messages.ElicitResult{}, ctx.Err()
		}
	}
}

// acceptAnswer hands an answer in. The first one of the process that was asked counts; one to a question that is over is none.
func (qs *openQuestions) acceptAnswer(from string, id string, res messages.ElicitResult) error {
	waiting, ok := qs.waiting.Load(id)
	if !ok {
		return nil
	}
	q := waiting.(openQuestion)
	if q.process != from {
		return &messages.Error{Op: "control", Class: messages.ClassDenied, Err: messages.ErrDenied,
			Text: "another process was asked this question"}
	}
	if _, ok := qs.waiting.LoadAndDelete(id); ok {
		q.answered <- res
	}
	return nil
}

// readHooks is what the caller of a stream wishes. done ends what goes on beside the answer, before it is sent.
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
	reports, written := make(chan messages.Progress, maxQueuedProgress), make(chan struct{})
	go func() { // it ends with done
		defer close(written)
		for p := range reports {
			_ = x.writeFrame(frame{Progress: &p}, nil) // the peer has gone: nobody is left to be told
		}
	}()
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
	qs := &openQuestions{}
	stream := func(pattern string, f func(ctx context.Context, x *streamWriter, r *http.Request, body []byte)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := requestContext(r)
			defer cancel()
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxArgs))
			if err != nil {
				writeError(w, &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid,
					Text: fmt.Sprintf("the arguments did not arrive; at most %d MiB are accepted", maxArgs>>20), Err: err})
				return
			}
			w.Header().Set("Content-Type", "application/x-ndjson")
			x := &streamWriter{w: w}
			defer func() { // whether a call has run is not known then
				if p := recover(); p != nil {
					x.writeFailure(panicError(p))
				}
			}()
			f(ctx, x, r, body)
		})
	}
	stream("POST "+pathCall, func(ctx context.Context, x *streamWriter, r *http.Request, body []byte) {
		q := r.URL.Query()
		a, done := x.readHooks(r, qs)
		res, err := func() (Result, error) {
			defer done()
			return b.Call(ctx, Call{Qualified: q.Get("qualified"), Server: q.Get("server"), Tool: q.Get("tool"), Args: body, CallHooks: a})
		}()
		if err != nil {
			x.writeFailure(err)
			return
		}
		outcome := messages.OutcomeResult
		if res.IsError {
			outcome = messages.OutcomeToolError
		}
		_ = x.writeFrame(frame{Result: &result{Bytes: len(res.Raw), Outcome: outcome}}, res.Raw) // as in end
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
		_ = x.writeFrame(frame{Result: &result{Bytes: len(res.Raw), Server: res.Server}}, res.Raw) // as in end
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
		_ = x.writeFrame(frame{Result: &result{Bytes: len(res.Raw), Server: res.Server, Name: res.Name}}, res.Raw) // as in end
	})
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
		_, _ = io.WriteString(w, "{}") // as in end
	})
}

// endWithoutResult ends a stream without a result.
func (x *streamWriter) endWithoutResult(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil: // the caller left
	case err != nil:
		x.writeFailure(err)
	default:
		x.writeFailure(&messages.Error{Op: "watch", Class: messages.ClassCanceled, Text: "the mcpvisor up of this project ended"})
	}
}

func panicError(p any) error {
	return &messages.Error{Op: "control", Outcome: messages.OutcomeUnknown, Class: messages.ClassPanic,
		Text: "a defect of mcpvisor ended the request: " + messages.Line(fmt.Sprint(p), 200)}
}
