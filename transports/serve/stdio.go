package serve

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// lastWrites is how long an agent has after the end of ctx to read what it was sent.
const lastWrites = 2 * time.Second

// Stdio serves one agent on lines, in both eras, until in ends or ctx does. Of the options, MaxBody, MaxRequests, MaxUnread, Unread and Began
// count. After
// the end of in every request is still answered, but nobody can be asked: questions are refused. It returns when every request has ended;
// the error is that of reading or writing. An agent that does not read loses what it was sent when ctx has ended: a write that has no
// end stays behind in its goroutine.
func Stdio(ctx context.Context, o Options, p Principal, path Path, in io.Reader, out io.Writer) error {
	caller := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	o = o.withDefaults()
	share := o.Unread.Open("an agent on lines")
	defer share.Close()
	c := &lineConn{o: o, ctx: ctx, closing: make(chan struct{}), out: newLineStream(out, o.MaxUnread, share, cancel), turns: make(chan struct{}, o.MaxRequests)}
	defer context.AfterFunc(caller, func() { time.AfterFunc(lastWrites, c.out.finishWriting) })()
	p.credential = newCredential() // nobody else comes by these lines
	c.session = &Session{Principal: p, Path: path, Began: o.Began, agent: newAgent()}
	c.session.stream = c.out
	defer func() {
		c.session.closeSession()
		cancel()
		c.running.Wait()
		p.credential.forget()
		c.out.closeStream()
		if c.initialized {
			o.Service.Closed(c.session)
		}
	}()
	lines := make(chan []byte)
	failed := make(chan error, 1)
	go func() { // it ends with in, or with the process: a read of standard input cannot be interrupted
		defer close(lines)
		failed <- ReadLines(ctx, in, int(o.MaxBody), lines)
	}()
	for {
		select {
		case <-ctx.Done():
			return c.out.writeProblem()
		case line, ok := <-lines:
			if !ok {
				close(c.closing)
				c.session.endInput()
				c.running.Wait() // what was asked is answered, although nothing more will be
				return errors.Join(<-failed, c.out.writeProblem())
			}
			c.receiveLine(line)
		}
	}
}

// ReadLines sends each line without the spaces around it, until in or ctx ends. Empty lines are left out; one that is longer than most is
// skipped, and sent as an empty one. A line without an end is none.
func ReadLines(ctx context.Context, in io.Reader, most int, lines chan<- []byte) error {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		var line []byte
		skipped := false
		for {
			part, err := r.ReadSlice('\n')
			if len(line)+len(part) > most {
				skipped, line = true, nil
			}
			if !skipped {
				line = append(line, part...)
			}
			if errors.Is(err, bufio.ErrBufferFull) {
				continue
			}
			if err != nil {
				if errors.Is(err, io.EOF) {
					return nil
				}
				return err
			}
			break
		}
		if line = bytes.TrimSpace(line); len(line) == 0 && !skipped {
			continue
		}
		select {
		case lines <- line:
		case <-ctx.Done():
			return nil
		}
	}
}

// lineConn is the conversation with one agent on lines. Only the goroutine of Stdio calls receiveLine.
type lineConn struct {
	o       Options
	ctx     context.Context //nolint:containedctx // it is that of the connection
	closing chan struct{}
	out     *lineStream
	session *Session
	// initialized is true once the service knows the session.
	initialized bool
	turns       chan struct{}
	running     sync.WaitGroup
}

// receiveLine acts on one line.
func (c *lineConn) receiveLine(line []byte) {
	if len(line) == 0 {
		c.out.writeAnswer(nil, appendError(nil, nil, refused(CodeInvalidRequest, "the message is too large")), nil)
		return
	}
	m, e := readMessage(line)
	switch {
	case e != nil:
		c.out.writeAnswer(m.id, appendError(nil, m.id, e), nil)
		return
	case !m.isRequest():
		receiveMessage(c.o.Service, c.session, &m)
		return
	}
	r, result, e := c.acceptRequest(&m)
	if r == nil {
		c.out.writeAnswer(m.id, appendAnswer(nil, m.id, result, e), nil)
		return
	}
	r.stream, r.closing = c.out, c.closing
	ctx, cancel := context.WithCancel(c.ctx)
	r.cancel = cancel
	select {
	case c.turns <- struct{}{}:
	default:
		cancel()
		c.out.writeAnswer(m.id, appendError(nil, m.id, &Error{Code: CodeBusy, Message: "too many requests are being answered"}), nil)
		return
	}
	s := c.session // initialize may replace it meanwhile
	if e := s.beginRequest(r); e != nil {
		<-c.turns
		cancel()
		c.out.writeAnswer(m.id, appendError(nil, m.id, e), nil)
		return
	}
	c.running.Go(func() {
		defer func() { <-c.turns }()
		defer cancel()
		result, e := callService(ctx, c.o.Service, r)
		s.finishRequest(r)
		if r.cancelled.Load() {
			r.endHolding()
			return
		}
		if r.Modern() && e == nil {
			result = withResultType(result)
		}
		c.out.writeAnswer(r.ID, appendAnswer(nil, r.ID, result, e), r.endHolding)
	})
}

// acceptRequest returns the request that the service must answer, or the answer to one that needs no service.
func (c *lineConn) acceptRequest(m *message) (r *Request, result []byte, e *Error) {
	switch {
	case rawjson.Member(m.meta, metaVersion) != nil:
		// The requests of the modern era share the session of the connection, for their ids; what each says of itself stays
		// with it.
		s := &Session{Principal: c.session.Principal, Path: c.session.Path, Began: c.session.Began, Modern: true, agent: c.session.agent}
		if r, e = newModernRequest(s, m); e != nil {
			return nil, nil, e
		}
		if result, answered, e := answerModern(c.o.Service, r); answered {
			return nil, result, e
		}
		return r, nil, nil
	case m.method == "initialize":
		if c.initialized {
			return nil, nil, &Error{Code: CodeInvalidRequest, Message: "the session is initialized already"}
		}
		s := &Session{Principal: c.session.Principal, Path: c.session.Path, Began: c.session.Began, agent: c.session.agent}
		result, e := openSession(c.o.Service, s, m)
		if e != nil {
			return nil, nil, e
		}
		s.stream, c.session = c.out, s
		c.initialized = true
		return nil, result, nil
	case m.method == "ping":
		return nil, []byte("{}"), nil
	case !c.initialized:
		if m.method == "server/discover" {
			return nil, nil, &Error{Code: CodeInvalidParams, Message: "_meta must have " + metaVersion}
		}
		return nil, nil, &Error{Code: CodeInvalidRequest, Message: "the session is not initialized, and the request names no version of the modern era"}
	}
	return c.session.newRequest(m), nil, nil
}
