package control

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// ErrNotRunning is wrapped by the error of [Dial] when no process serves the location.
var ErrNotRunning = errors.New("nobody serves this project")

const (
	// helloTimeout bounds the first request: a suspended process accepts connections and never answers.
	helloTimeout = 2 * time.Second
	// answerSlack is the time for the answer beyond the deadline that the other side was given, so that its own
	// report of the timeout can arrive.
	answerSlack = time.Second
	// maxAnswer bounds an answer in bytes, far above the largest that a manager accepts from a server.
	maxAnswer = 1 << 30
)

// Client is a Backend in another process. Its owner must call Close. It holds no connection between two requests, so
// the end of the other process shows at the next request only.
type Client struct {
	hello Hello // from Dial; it does not change while the process lives
	http  *http.Client
}

var _ Backend = (*Client)(nil)

// Dial connects to the process that serves the location. The error wraps ErrNotRunning if there is none; any other
// error is the reason for which the process that is there cannot be used. A command should start a manager of its own
// only after ErrNotRunning.
func Dial(ctx context.Context, location Location) (*Client, error) {
	// The directory is checked before the connection: a socket in a directory that others can write to may be theirs.
	if err := checkPrivate(filepath.Dir(location.Socket)); errors.Is(err, os.ErrNotExist) {
		return nil, notRunningError(location, err)
	} else if err != nil {
		return nil, err
	}
	c := &Client{http: &http.Client{Transport: &http.Transport{
		// Each request gets a connection of its own, because net/http repeats a request by itself over a connection
		// that was used before, and a call must not run twice.
		DisableKeepAlives:  true,
		DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			conn, err := d.DialContext(ctx, "unix", location.Socket)
			if err != nil {
				return nil, &dialError{err}
			}
			return conn, nil
		},
	}}}
	// The first request shows whether a process answers, and which version it is.
	helloCtx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	err := c.requestJSON(helloCtx, http.MethodGet, pathHello, nil, nil, &c.hello)
	var refused *dialError
	switch {
	// A refused connection means that the process is gone, unless the caller's own time has passed.
	case errors.As(err, &refused) && ctx.Err() == nil:
		return nil, notRunningError(location, refused.err)
	case err != nil:
		return nil, err
	// A guess at what an older or newer process means could run the wrong thing, so there is no attempt.
	case c.hello.Protocol != Protocol:
		return nil, &messages.Error{Op: "control", Class: messages.ClassUnsupported,
			Text: fmt.Sprintf("process %d is mcpvisor %s, which speaks protocol %d on its control socket, not %d",
				c.hello.PID, messages.Line(c.hello.Version, 40), c.hello.Protocol, Protocol)}
	}
	return c, nil
}

// dialError marks a failure before anything was sent, so that a call's outcome is not-sent.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// notRunningError is the error for a location that no process serves.
func notRunningError(location Location, cause error) error {
	return &messages.Error{Op: "control", Class: messages.ClassInvalid,
		Text: "no mcpvisor up runs for " + messages.Line(location.Project, 0), Fix: "start one with: mcpvisor up",
		Err: errors.Join(ErrNotRunning, cause)}
}

// Close releases the client's connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// Hello returns the answer that the process gave when it was dialled.
func (c *Client) Hello(context.Context) (Hello, error) { return c.hello, nil }

// Status implements Backend.
func (c *Client) Status(ctx context.Context, q StatusQuery) ([]messages.Status, error) {
	// Without Wait the other side answers at once, and Retries has no meaning.
	v := url.Values{"server": q.Servers}
	if q.Wait > 0 {
		v.Set("wait", q.Wait.String())
		v.Set("retries", strconv.FormatBool(q.Retries))
	}
	var out []messages.Status
	err := c.requestJSON(ctx, http.MethodGet, pathStatus, v, nil, &out)
	return out, err
}

// Tools implements Backend.
func (c *Client) Tools(ctx context.Context, servers ...string) ([]Tool, error) {
	var out []Tool
	err := c.requestJSON(ctx, http.MethodGet, pathTools, url.Values{"server": servers}, nil, &out)
	return out, err
}

// History implements Backend.
func (c *Client) History(ctx context.Context, server string) (History, error) {
	var out History
	err := c.requestJSON(ctx, http.MethodGet, pathHistory, url.Values{"server": {server}}, nil, &out)
	return out, err
}

// Reload implements Backend.
func (c *Client) Reload(ctx context.Context) (supervisor.ReloadResult, error) {
	var out supervisor.ReloadResult
	err := c.requestJSON(ctx, http.MethodPost, pathReload, nil, nil, &out)
	return out, err
}

// Reconnect implements Backend.
func (c *Client) Reconnect(ctx context.Context, server string) error {
	return c.requestJSON(ctx, http.MethodPost, pathReconnect, url.Values{"server": {server}}, nil, nil)
}

// Enable implements Backend.
func (c *Client) Enable(ctx context.Context, server string) error {
	return c.requestJSON(ctx, http.MethodPost, pathEnable, url.Values{"server": {server}}, nil, nil)
}

// Disable implements Backend.
func (c *Client) Disable(ctx context.Context, server string, disconnect bool) error {
	v := url.Values{"server": {server}, "disconnect": {strconv.FormatBool(disconnect)}}
	return c.requestJSON(ctx, http.MethodPost, pathDisable, v, nil, nil)
}

// requestJSON sends a request and decodes the answer into out; nil ignores the answer.
func (c *Client) requestJSON(ctx context.Context, method, path string, q url.Values, body []byte, out any) error {
	// The answer is read whole before it is decoded, so a broken connection is told from broken JSON.
	res, err := c.sendRequest(ctx, method, path, q, body)
	if err != nil || out == nil {
		return err
	}
	if err := json.Unmarshal(res.body, out); err != nil {
		return &messages.Error{Op: "control", Class: messages.ClassProtocol,
			Text: "the answer on the control socket cannot be read: " + messages.Line(err.Error(), 200), Err: err}
	}
	return nil
}

// response is the body of a successful answer.
type response struct{ body []byte }

// sendRequest sends a request and reads the whole answer. A failure in the answer becomes the error.
func (c *Client) sendRequest(ctx context.Context, method, path string, q url.Values, body []byte) (response, error) {
	ctx, timeout, cancel := withForwardedTimeout(ctx)
	defer cancel()
	// The host is only a name that HTTP demands: DialContext ignores it.
	req, err := http.NewRequestWithContext(ctx, method, "http://mcpvisor"+path+"?"+q.Encode(), bytes.NewReader(body))
	if err != nil {
		return response{}, socketError(ctx, err)
	}
	if timeout != "" {
		req.Header.Set(headerTimeout, timeout)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return response{}, socketError(ctx, err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return response{}, socketError(ctx, err)
	}
	// Every other status has a failure as its body.
	if resp.StatusCode == http.StatusOK {
		return response{answer}, nil
	}
	return response{}, decodeError(answer, resp.Status)
}

// readError returns the error in the body of a response.
func readError(ctx context.Context, resp *http.Response) error {
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxFrame))
	if err != nil {
		return socketError(ctx, err)
	}
	return decodeError(answer, resp.Status)
}

// decodeError returns the error in an answer. An answer that is no failure comes from another version of this
// program, or from another program.
func decodeError(answer []byte, status string) error {
	var f failure
	if json.Unmarshal(answer, &f) != nil || f.Text == "" {
		f = failure{Op: "control", Class: messages.ClassUnsupported,
			Text: fmt.Sprintf("the control socket answered %s: the other side may be another version of mcpvisor", status)}
	}
	return f.toError()
}

// withForwardedTimeout returns the time that ctx has left, in milliseconds for the header, and a context that lasts a
// little longer: the other side then reports what was not done in time, instead of a broken connection here. A
// cancelled ctx ends the request at once.
func withForwardedTimeout(ctx context.Context) (context.Context, string, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		ctx, cancel := context.WithCancel(ctx)
		return ctx, "", cancel
	}
	extended, cancel := context.WithDeadline(context.WithoutCancel(ctx), deadline.Add(answerSlack))
	// Only a cancellation is passed on; the deadline of ctx is the other side's.
	stop := context.AfterFunc(ctx, func() {
		if errors.Is(ctx.Err(), context.Canceled) {
			cancel()
		}
	})
	return extended, strconv.FormatInt(max(time.Until(deadline).Milliseconds(), 0), 10), func() {
		stop()
		cancel()
	}
}

// socketError returns the error of a failure of the socket itself. It has no outcome: withOutcome sets it.
func socketError(ctx context.Context, err error) error {
	e := &messages.Error{Op: "control", Class: messages.ClassNetwork, Err: err,
		Text: "the mcpvisor up of this project ended before it answered"}
	switch ctxErr := ctx.Err(); {
	case errors.Is(ctxErr, context.DeadlineExceeded):
		e.Class, e.Text = messages.ClassTimeout, "the mcpvisor up of this project does not answer"
	case ctxErr != nil:
		e.Class, e.Text = messages.ClassCanceled, "interrupted"
	}
	return e
}
