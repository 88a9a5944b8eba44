package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
)

// ErrNotRunning is wrapped by the error of [Dial] when no process serves the location.
var ErrNotRunning = errors.New("nobody serves this project")

const (
	// helloTimeout bounds the first request: a suspended process accepts connections and never answers.
	helloTimeout = 2 * time.Second
	// answerSlack is the time for the answer beyond the deadline that the other side was given, so that its own
	// report of the timeout can arrive.
	answerSlack = time.Second
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
	// The first request shows whether a process answers, and whether it speaks this protocol.
	helloCtx, cancel := context.WithTimeout(ctx, helloTimeout)
	defer cancel()
	reply, err := send[*messages.ManagerReply](helloCtx, c, &messages.GetManager{}, nil)
	var refused *dialError
	switch {
	// A refused connection means that the process is gone, unless the caller's own time has passed.
	case errors.As(err, &refused) && ctx.Err() == nil:
		return nil, notRunningError(location, refused.err)
	// A guess at what an older or newer process means could run the wrong thing, so there is no attempt.
	case errors.Is(err, errOtherProtocol):
		return nil, c.otherProtocolError(helloCtx)
	case err != nil:
		return nil, err
	}
	c.hello = helloFromProto(reply)
	return c, nil
}

// dialError marks a failure before anything was sent, so that a call's outcome is not-sent.
type dialError struct{ err error }

func (e *dialError) Error() string { return e.err.Error() }
func (e *dialError) Unwrap() error { return e.err }

// notRunningError is the error for a location that no process serves.
func notRunningError(location Location, cause error) error {
	return &messages.Error{Op: "control", Class: messages.ClassInvalid,
		Text: "neither the daemon nor a mcpvisor up keeps the servers of " + messages.Line(location.Project, 0), Fix: "start one with: mcpvisor up",
		Err: errors.Join(ErrNotRunning, cause)}
}

// errOtherProtocol is wrapped by the error of an answer that is none of this protocol.
var errOtherProtocol = errors.New("another protocol")

// otherProtocolError asks the process for its greeting, which is the same in all versions, and names both protocols.
func (c *Client) otherProtocolError(ctx context.Context) error {
	var g greeting
	if err := c.fetchGreeting(ctx, &g); err != nil || g.Protocol == 0 {
		return &messages.Error{Op: "control", Class: messages.ClassUnsupported, Err: errOtherProtocol,
			Text: "what answers on the control socket of this project is no mcpvisor that this one understands", Fix: "end it, and start mcpvisor up again"}
	}
	keeper, fix := "running mcpvisor up", fmt.Sprintf("end process %d, and start mcpvisor up again with this version", g.PID)
	if IsDaemon(g.PID) {
		keeper, fix = "daemon", "end it with mcpvisor down: agents then start one of this version"
	}
	if g.Protocol > Protocol {
		fix = "use the newer mcpvisor for this command too"
	}
	return &messages.Error{Op: "control", Class: messages.ClassUnsupported, Err: errOtherProtocol, Fix: fix,
		Text: fmt.Sprintf("this mcpvisor speaks control protocol %d, and the %s (process %d, version %s) %d",
			Protocol, keeper, g.PID, messages.Line(g.Version, 40), g.Protocol)}
}

// fetchGreeting fetches the greeting of a process of whatever version.
func (c *Client) fetchGreeting(ctx context.Context, g *greeting) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://mcpvisor"+pathGreeting, nil)
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(g)
}

// Close releases the client's connections.
func (c *Client) Close() error {
	c.http.CloseIdleConnections()
	return nil
}

// send sends a command and gives each message of the answer to part, until the reply. Without a part the others are ignored. A
// failure of the other side becomes the error; so does an answer that ends without a reply: it is lost.
func send[R proto.Message](ctx context.Context, c *Client, command proto.Message, part func(proto.Message) error) (reply R, err error) {
	ctx, timeout, cancel := withForwardedTimeout(ctx)
	defer cancel()
	body, err := encodeMessage(command)
	if err != nil {
		return reply, malformedError("command", nameOf(command))
	}
	// The host is only a name that HTTP demands: DialContext ignores it.
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://mcpvisor"+commandPath+nameOf(command), bytes.NewReader(body))
	if err != nil {
		return reply, socketError(ctx, err)
	}
	if timeout != "" {
		req.Header.Set(headerTimeout, timeout)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return reply, socketError(ctx, err)
	}
	defer resp.Body.Close()
	if resp.Header.Get("Content-Type") != contentType {
		return reply, &messages.Error{Op: "control", Class: messages.ClassUnsupported, Err: errOtherProtocol,
			Text: fmt.Sprintf("the control socket answered %s: the other side may be another version of mcpvisor", resp.Status)}
	}
	frames := bufio.NewReaderSize(resp.Body, 64<<10)
	for {
		// Each round reads one message; an answer that ends without its last one ends with an error here.
		m, err := readFrame(frames)
		switch {
		case errors.Is(err, errMalformed):
			return reply, &messages.Error{Op: "control", Class: messages.ClassProtocol,
				Text: "the answer on the control socket cannot be read: " + messages.Line(err.Error(), 200), Err: err}
		case err != nil:
			return reply, socketError(ctx, err)
		}
		if f, failed := m.(*messages.Failure); failed {
			return reply, f.ToError()
		}
		if r, last := m.(R); last {
			return r, nil
		}
		if part != nil {
			if err := part(m); err != nil {
				return reply, err
			}
		}
	}
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
		Text: "what keeps the servers of this project ended before it answered"}
	switch ctxErr := ctx.Err(); {
	case errors.Is(ctxErr, context.DeadlineExceeded):
		e.Class, e.Text = messages.ClassTimeout, "what keeps the servers of this project does not answer"
	case ctxErr != nil:
		e.Class, e.Text = messages.ClassCanceled, "interrupted"
	}
	return e
}
