package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// maxFrame bounds a line of a stream in bytes: an event with a server's whole status, or a question with its form. A
// longer line ends the stream with an error.
const maxFrame = 64 << 20

// Call implements Backend. The other side sends the result as raw bytes, so they are the server's own.
func (c *Client) Call(ctx context.Context, call Call) (Result, error) {
	// Names travel in the query and the arguments in the body, so that the body stays the caller's bytes.
	v := url.Values{"qualified": {call.Qualified}, "server": {call.Server}, "tool": {call.Tool}}
	head, raw, err := c.requestWithHooks(ctx, pathCall, v, call.Args, call.CallHooks)
	if err != nil {
		return Result{}, withOutcome(err, "call", call.Server, call.Tool)
	}
	return Result{Raw: raw, IsError: head.Outcome == messages.OutcomeToolError}, nil
}

// Read implements Backend. The head names the server that gave the resource, also if the caller named none.
func (c *Client) Read(ctx context.Context, r Read) (ReadResult, error) {
	v := url.Values{"server": {r.Server}, "uri": {r.URI}}
	head, raw, err := c.requestWithHooks(ctx, pathRead, v, nil, r.CallHooks)
	return ReadResult{Server: head.Server, Raw: raw}, withOutcome(err, "read", r.Server, "")
}

// Fill implements Backend. The arguments are the body, as those of a call are.
func (c *Client) Fill(ctx context.Context, f Fill) (FillResult, error) {
	v := url.Values{"qualified": {f.Qualified}, "server": {f.Server}, "name": {f.Name}}
	args, err := json.Marshal(f.Args)
	if err != nil {
		return FillResult{}, malformedError("arguments", err.Error())
	}
	head, raw, err := c.requestWithHooks(ctx, pathFill, v, args, f.CallHooks)
	return FillResult{Server: head.Server, Name: head.Name, Raw: raw}, withOutcome(err, "read", f.Server, "")
}

// withOutcome completes an error of the socket itself, which has no outcome yet: the request was not sent if the
// connection failed, otherwise its effect is unknown. Errors of the other side pass unchanged.
func withOutcome(err error, op, server, tool string) error {
	var e *messages.Error
	if errors.As(err, &e) && e.Outcome == "" {
		e.Op, e.Outcome, e.Server, e.Tool = op, messages.OutcomeUnknown, server, tool
		// A dialError means that no connection was made.
		var refused *dialError
		if errors.As(err, &refused) {
			e.Outcome = messages.OutcomeNotSent
		}
	}
	return err
}

// Resources implements Backend.
func (c *Client) Resources(ctx context.Context, servers ...string) ([]messages.Resource, error) {
	return fetchList[messages.Resource](ctx, c, pathResources, servers)
}

// Templates implements Backend.
func (c *Client) Templates(ctx context.Context, servers ...string) ([]messages.ResourceTemplate, error) {
	return fetchList[messages.ResourceTemplate](ctx, c, pathTemplates, servers)
}

// Prompts implements Backend.
func (c *Client) Prompts(ctx context.Context, servers ...string) ([]messages.Prompt, error) {
	return fetchList[messages.Prompt](ctx, c, pathPrompts, servers)
}

// fetchList fetches a list of which parts may be missing.
func fetchList[T any](ctx context.Context, c *Client, path string, servers []string) ([]T, error) {
	var out partialList[T]
	if err := c.requestJSON(ctx, http.MethodGet, path, url.Values{"server": servers}, nil, &out); err != nil {
		return nil, err
	}
	// Items and an error can both be there: see Backend.Resources.
	return out.Items, out.joinedError()
}

// Complete implements Backend.
func (c *Client) Complete(ctx context.Context, server string, r messages.CompleteRequest) (messages.Completion, error) {
	var out messages.Completion
	body, err := json.Marshal(r)
	if err != nil {
		return out, malformedError("request", err.Error())
	}
	err = c.requestJSON(ctx, http.MethodPost, pathComplete, url.Values{"server": {server}}, body, &out)
	return out, err
}

// Ping implements Backend.
func (c *Client) Ping(ctx context.Context, server string) (time.Duration, error) {
	var out pingReply
	err := c.requestJSON(ctx, http.MethodPost, pathPing, url.Values{"server": {server}}, nil, &out)
	return out.Took, err
}

// Logs implements Backend.
func (c *Client) Logs(ctx context.Context, server string) ([]supervisor.LogLine, error) {
	var out []supervisor.LogLine
	err := c.requestJSON(ctx, http.MethodGet, pathLogs, url.Values{"server": {server}}, nil, &out)
	return out, err
}

// Follow implements Backend. The stream has no end of its own: ctx or f ends it.
func (c *Client) Follow(ctx context.Context, server string, f func(messages.Event) error) error {
	_, _, err := c.streamFrames(ctx, http.MethodGet, pathEvents, url.Values{"server": {server}}, nil, func(fr frame) error {
		if fr.Event == nil {
			return nil
		}
		return f(*fr.Event)
	})
	return ignoreCancel(ctx, err)
}

// Watch implements Backend. f runs on the caller's goroutine, one call at a time.
func (c *Client) Watch(ctx context.Context, server, uri string, f func() error) error {
	// The stream is read while f runs, so that the other side is not held up; changes that come meanwhile become one.
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	changed, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() { // it ends with ctx, which the deferred cancel ends
		v := url.Values{"server": {server}, "uri": {uri}}
		_, _, err := c.streamFrames(ctx, http.MethodPost, pathWatch, v, nil, func(fr frame) error {
			if fr.Changed {
				select {
				case changed <- struct{}{}:
				default:
				}
			}
			return nil
		})
		ended <- err
	}()
	for {
		select {
		case <-changed:
			if err := f(); err != nil {
				return err
			}
		case err := <-ended:
			return ignoreCancel(ctx, err)
		}
	}
}

// ignoreCancel returns err, or nil if the caller itself ended the request.
func ignoreCancel(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // a request without an end is ended in this way
	}
	return err
}

// requestWithHooks makes a request whose answer is a result, and calls the caller's hooks meanwhile. The query
// announces which hooks there are, so that the other side asks no question that would stay open. It returns after all
// hooks have returned.
func (c *Client) requestWithHooks(ctx context.Context, path string, v url.Values, body []byte, a CallHooks) (result, []byte, error) {
	if a.Progress != nil {
		v.Set("progress", "true")
	}
	if a.Ask != nil {
		v.Set("ask", "true")
	}
	if a.Permit != nil {
		v.Set("permit", "true")
	}
	if len(a.Meta) > 0 {
		v.Set("meta", string(a.Meta))
	}
	// Questions are withdrawn one by one, or all when the request ends. open belongs to this goroutine, which calls
	// the function below.
	askCtx, cancel := context.WithCancel(ctx)
	open := map[string]context.CancelFunc{}
	var answering sync.WaitGroup
	defer answering.Wait()
	defer cancel()
	return c.streamFrames(ctx, http.MethodPost, path, v, body, func(f frame) error {
		switch {
		// Progress is reported on this goroutine: a slow hook holds up the stream, and the other side then drops
		// progress.
		case f.Progress != nil && a.Progress != nil:
			a.Progress(*f.Progress)
		// A person may take minutes, and the stream must go on meanwhile: each question has its own goroutine.
		case f.Ask != nil && a.answererFor(f.Ask.Request) != nil:
			one, withdraw := context.WithCancel(askCtx)
			open[f.Ask.ID] = withdraw
			answering.Go(func() {
				defer withdraw()
				c.answerQuestion(one, *f.Ask, a.answererFor(f.Ask.Request))
			})
		// The server does not need the answer any more, or its call has ended.
		case f.Withdrawn != "" && open[f.Withdrawn] != nil:
			open[f.Withdrawn]()
			delete(open, f.Withdrawn)
		}
		return nil
	})
}

// answerQuestion asks the caller's person and sends the answer, or that no person saw the question.
func (c *Client) answerQuestion(ctx context.Context, q question, ask elicitFunc) {
	res, err := ask(ctx, q.Request)
	if err != nil {
		res = messages.ElicitResult{Action: actionUnseen}
	}
	body, err := json.Marshal(res)
	if err != nil || ctx.Err() != nil { // the question was withdrawn
		return
	}
	_ = c.requestJSON(ctx, http.MethodPost, pathAnswer, url.Values{"id": {q.ID}}, body, nil) // if it does not arrive, the request itself reports its end
}

// streamFrames makes a request and gives each frame to f, until the stream ends with a result or a failure, or f
// returns an error. A stream that ends otherwise is an error: the answer is lost.
func (c *Client) streamFrames(ctx context.Context, method, path string, v url.Values, body []byte, f func(frame) error) (
	result, []byte, error,
) {
	ctx, timeout, cancel := withForwardedTimeout(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, "http://mcpvisor"+path+"?"+v.Encode(), bytes.NewReader(body))
	if err != nil {
		return result{}, nil, socketError(ctx, err)
	}
	if timeout != "" {
		req.Header.Set(headerTimeout, timeout)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return result{}, nil, socketError(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return result{}, nil, readError(ctx, resp)
	}
	// One reader for lines and raw bytes: the bytes after a result's line may be in its buffer already.
	lines := bufio.NewReaderSize(resp.Body, 64<<10)
	for {
		// Each round reads one frame; a stream that ends without a last frame ends with an error here.
		line, err := readLine(lines)
		if err != nil {
			return result{}, nil, socketError(ctx, err)
		}
		var received frame
		if err := json.Unmarshal(line, &received); err != nil {
			return result{}, nil, &messages.Error{Op: "control", Class: messages.ClassProtocol,
				Text: "the answer on the control socket cannot be read: " + messages.Line(err.Error(), 200), Err: err}
		}
		switch {
		// A failure or a result is the last frame; all others go to f.
		case received.Failure != nil:
			return result{}, nil, received.Failure.toError()
		case received.Result != nil:
			// The length comes from another process, so it is checked before memory is allocated for it.
			if received.Result.Bytes < 0 || received.Result.Bytes > maxAnswer {
				return result{}, nil, malformedError("length", strconv.Itoa(received.Result.Bytes))
			}
			raw := make([]byte, received.Result.Bytes)
			if _, err := io.ReadFull(lines, raw); err != nil {
				return result{}, nil, socketError(ctx, err)
			}
			return *received.Result, raw, nil
		}
		if err := f(received); err != nil {
			return result{}, nil, err
		}
	}
}

// errLongFrame is the error of a line beyond maxFrame.
var errLongFrame = errors.New("a line of the stream is too long")

// readLine reads one line, at most maxFrame bytes. bufio.Reader.ReadBytes has no such bound.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > maxFrame {
			return nil, errLongFrame
		}
		line = append(line, part...)
		// A full buffer only means that the line is longer than it; the loop reads the rest.
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}
