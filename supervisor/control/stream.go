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
	// progressWaiting is how many reports of progress may wait for a caller that reads slowly; more are dropped.
	progressWaiting = 64
	// maxAnswered bounds the answer to a question, in bytes.
	maxAnswered = 16 << 20
)

// exchange is one stream, of the side that answers. Safe for concurrent use.
type exchange struct {
	mu sync.Mutex
	w  http.ResponseWriter
}

// send writes a line, and the bytes that belong to it. The error says that the caller is gone.
func (x *exchange) send(f frame, bytes []byte) error {
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

func (x *exchange) end(err error) {
	f := failureOf(err)
	_ = x.send(frame{Failure: &f}, nil) // the peer has gone: nobody is left to be told
}

// elicit answers what a server asks.
type elicit = func(context.Context, messages.ElicitRequest) (messages.ElicitResult, error)

// questions are those that callers have not answered yet. The zero value is ready.
type questions struct {
	waiting sync.Map // id → open
}

// open is a question that waits for the process that was asked.
type open struct {
	asked    string // fence.Peer.Process; empty where the system does not tell
	answered chan messages.ElicitResult
}

// ask puts a question to the caller of a stream. Its id holds 128 random bits: it cannot be guessed, and only who reads the
// stream is told.
func (qs *questions) ask(x *exchange, stream context.Context) elicit {
	asked, gone := peerOf(stream).Process(), stream.Done()
	return func(ctx context.Context, r messages.ElicitRequest) (messages.ElicitResult, error) {
		id, answered := rand.Text(), make(chan messages.ElicitResult, 1)
		qs.waiting.Store(id, open{asked, answered})
		defer qs.waiting.Delete(id)
		if err := x.send(frame{Ask: &question{id, r}}, nil); err != nil {
			return messages.ElicitResult{}, err
		}
		select {
		case res := <-answered:
			if res.Action == actionUnseen {
				return messages.ElicitResult{}, &messages.Error{Op: "elicit", Class: messages.ClassDenied,
					Text: "the caller could not show it", Err: messages.ErrNotShown}
			}
			return res, nil
		case <-gone:
			return messages.ElicitResult{}, &messages.Error{Op: "elicit", Class: messages.ClassCanceled,
				Text: "the caller went away"}
		case <-ctx.Done():
			_ = x.send(frame{Withdrawn: id}, nil) // the peer has gone: nobody is left to be told
			return messages.ElicitResult{}, ctx.Err()
		}
	}
}

// answer hands an answer in. The first one of the process that was asked counts; one to a question that is over is none.
func (qs *questions) answer(from string, id string, res messages.ElicitResult) error {
	waiting, ok := qs.waiting.Load(id)
	if !ok {
		return nil
	}
	q := waiting.(open)
	if q.asked != from {
		return &messages.Error{Op: "control", Class: messages.ClassDenied, Err: messages.ErrDenied,
			Text: "another process was asked this question"}
	}
	if _, ok := qs.waiting.LoadAndDelete(id); ok {
		q.answered <- res
	}
	return nil
}

// aside is what the caller of a stream wishes. done ends what goes on beside the answer, before it is sent.
func (x *exchange) aside(r *http.Request, qs *questions) (a Aside, done func()) {
	q := r.URL.Query()
	if meta := q.Get("meta"); meta != "" {
		a.Meta = json.RawMessage(meta)
	}
	if q.Get("ask") == "true" {
		a.Ask = qs.ask(x, r.Context())
	}
	if q.Get("permit") == "true" {
		a.Permit = permitBy(qs.ask(x, r.Context()))
	}
	if q.Get("progress") != "true" {
		return a, func() {}
	}
	reports, written := make(chan messages.Progress, progressWaiting), make(chan struct{})
	go func() { // it ends with done
		defer close(written)
		for p := range reports {
			_ = x.send(frame{Progress: &p}, nil) // the peer has gone: nobody is left to be told
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

// streams adds the routes that answer in parts.
func streams(mux *http.ServeMux, b Backend) {
	qs := &questions{}
	stream := func(pattern string, f func(ctx context.Context, x *exchange, r *http.Request, body []byte)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := bounded(r)
			defer cancel()
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxArgs))
			if err != nil {
				refuse(w, &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid,
					Text: fmt.Sprintf("the arguments did not arrive; at most %d MiB are accepted", maxArgs>>20), Err: err})
				return
			}
			w.Header().Set("Content-Type", "application/x-ndjson")
			x := &exchange{w: w}
			defer func() { // whether a call has run is not known then
				if p := recover(); p != nil {
					x.end(panicked(p))
				}
			}()
			f(ctx, x, r, body)
		})
	}
	stream("POST "+pathCall, func(ctx context.Context, x *exchange, r *http.Request, body []byte) {
		q := r.URL.Query()
		a, done := x.aside(r, qs)
		res, err := func() (Result, error) {
			defer done()
			return b.Call(ctx, Call{Qualified: q.Get("qualified"), Server: q.Get("server"), Tool: q.Get("tool"), Args: body, Aside: a})
		}()
		if err != nil {
			x.end(err)
			return
		}
		outcome := messages.OutcomeResult
		if res.IsError {
			outcome = messages.OutcomeToolError
		}
		_ = x.send(frame{Result: &result{Bytes: len(res.Raw), Outcome: outcome}}, res.Raw) // as in end
	})
	stream("POST "+pathRead, func(ctx context.Context, x *exchange, r *http.Request, _ []byte) {
		q := r.URL.Query()
		a, done := x.aside(r, qs)
		res, err := func() (ReadResult, error) {
			defer done()
			return b.Read(ctx, Read{Server: q.Get("server"), URI: q.Get("uri"), Aside: a})
		}()
		if err != nil {
			x.end(err)
			return
		}
		_ = x.send(frame{Result: &result{Bytes: len(res.Raw), Server: res.Server}}, res.Raw) // as in end
	})
	stream("POST "+pathFill, func(ctx context.Context, x *exchange, r *http.Request, body []byte) {
		q := r.URL.Query()
		f := Fill{Qualified: q.Get("qualified"), Server: q.Get("server"), Name: q.Get("name")}
		if err := json.Unmarshal(body, &f.Args); err != nil {
			x.end(malformed("body", err.Error()))
			return
		}
		a, done := x.aside(r, qs)
		res, err := func() (FillResult, error) {
			defer done()
			f.Aside = a
			return b.Fill(ctx, f)
		}()
		if err != nil {
			x.end(err)
			return
		}
		_ = x.send(frame{Result: &result{Bytes: len(res.Raw), Server: res.Server, Name: res.Name}}, res.Raw) // as in end
	})
	stream("GET "+pathEvents, func(ctx context.Context, x *exchange, r *http.Request, _ []byte) {
		err := b.Follow(ctx, r.URL.Query().Get("server"), func(e messages.Event) error {
			return x.send(frame{Event: &e}, nil)
		})
		x.over(ctx, err)
	})
	stream("POST "+pathWatch, func(ctx context.Context, x *exchange, r *http.Request, _ []byte) {
		q := r.URL.Query()
		err := b.Watch(ctx, q.Get("server"), q.Get("uri"), func() error { return x.send(frame{Changed: true}, nil) })
		x.over(ctx, err)
	})
	mux.HandleFunc("POST "+pathAnswer, func(w http.ResponseWriter, r *http.Request) {
		var res messages.ElicitResult
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxAnswered)).Decode(&res); err != nil {
			refuse(w, malformed("answer", err.Error()))
			return
		}
		if err := qs.answer(peerOf(r.Context()).Process(), r.URL.Query().Get("id"), res); err != nil {
			refuse(w, err)
			return
		}
		_, _ = io.WriteString(w, "{}") // as in end
	})
}

// over ends a stream without a result.
func (x *exchange) over(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil: // the caller left
	case err != nil:
		x.end(err)
	default:
		x.end(&messages.Error{Op: "watch", Class: messages.ClassCanceled, Text: "the mcpvisor up of this project ended"})
	}
}

func panicked(p any) error {
	return &messages.Error{Op: "control", Outcome: messages.OutcomeUnknown, Class: messages.ClassPanic,
		Text: "a defect of mcpvisor ended the request: " + messages.Line(fmt.Sprint(p), 200)}
}
