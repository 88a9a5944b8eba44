package serve

import (
	"bufio"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// lastWrites is how long an agent has after the end of ctx to read what it was sent.
const lastWrites = 2 * time.Second

// Stdio serves one agent on lines, in both eras, until in ends or ctx does. Of the options, MaxBody, MaxRequests and Began count. After
// the end of in every request is still answered, but nobody can be asked: questions are refused. It returns when every request has ended;
// the error is that of reading or writing. An agent that does not read loses what it was sent when ctx has ended: a write that has no
// end stays behind in its goroutine.
func Stdio(ctx context.Context, o Options, p Principal, path Path, in io.Reader, out io.Writer) error {
	caller := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	o = o.withDefaults()
	c := &lineConn{o: o, ctx: ctx, closing: make(chan struct{}), out: newLineStream(out, cancel), turns: make(chan struct{}, o.MaxRequests)}
	defer context.AfterFunc(caller, func() { time.AfterFunc(lastWrites, c.out.abandonStream) })()
	p.credential = newCredential() // nobody else comes by these lines
	c.session = &Session{Principal: p, Path: path, Began: o.Began}
	c.session.stream = c.out
	defer func() {
		cancel()
		c.session.closeSession()
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
		failed <- readLines(ctx, in, int(o.MaxBody), lines)
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

// tooLong stands for a line that was too long.
var tooLong = []byte{}

// readLines sends each line without its end; one that is too long is skipped and sent as tooLong.
func readLines(ctx context.Context, in io.Reader, most int, lines chan<- []byte) error {
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
		if skipped {
			line = tooLong
		} else if rawjson.SkipSpace(line, 0) == len(line) {
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
		c.out.writeAnswer(appendError(nil, nil, refused(CodeInvalidRequest, "the message is too large")))
		return
	}
	m, e := readMessage(line)
	switch {
	case e != nil:
		c.out.writeAnswer(appendError(nil, m.id, e))
		return
	case !m.isRequest():
		receiveMessage(c.o.Service, c.session, &m)
		return
	}
	r, result, e := c.acceptRequest(&m)
	if r == nil {
		c.out.writeAnswer(appendAnswer(nil, m.id, result, e))
		return
	}
	r.stream, r.closing = c.out, c.closing
	ctx, cancel := context.WithCancel(c.ctx)
	r.cancel = cancel
	select {
	case c.turns <- struct{}{}:
	default:
		cancel()
		c.out.writeAnswer(appendError(nil, m.id, &Error{Code: CodeBusy, Message: "too many requests are being answered"}))
		return
	}
	s := c.session // initialize may replace it meanwhile
	if e := s.beginRequest(r); e != nil {
		<-c.turns
		cancel()
		c.out.writeAnswer(appendError(nil, m.id, e))
		return
	}
	c.running.Go(func() {
		defer func() { <-c.turns }()
		defer cancel()
		result, e := callService(ctx, c.o.Service, r)
		s.finishRequest(r)
		if r.cancelled.Load() {
			return
		}
		if r.Modern() && e == nil {
			result = withResultType(result)
		}
		c.out.writeAnswer(appendAnswer(nil, r.ID, result, e))
	})
}

// acceptRequest returns the request that the service must answer, or the answer to one that needs no service.
func (c *lineConn) acceptRequest(m *message) (r *Request, result []byte, e *Error) {
	switch {
	case rawjson.Member(m.meta, metaVersion) != nil:
		// The requests of the modern era share the session of the connection, for their ids; what each says of itself stays
		// with it.
		s := &Session{Principal: c.session.Principal, Path: c.session.Path, Began: c.session.Began, Modern: true}
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
		s := &Session{Principal: c.session.Principal, Path: c.session.Path, Began: c.session.Began}
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

// lineStream writes lines, one goroutine at a time, in order. Answers wait for their turn; notices are dropped when too many wait.
type lineStream struct {
	failed func()

	mu    sync.Mutex
	more  sync.Cond // one of the fields below has changed
	queue [][]byte
	bytes int
	ended bool
	err   error
	// written says that nothing more will be written: everything is, or the rest was abandoned.
	written bool
}

func newLineStream(out io.Writer, failed func()) *lineStream {
	s := &lineStream{failed: failed}
	s.more.L = &s.mu
	go func() { // it ends with closeStream, or with a write that was abandoned
		defer s.finishWriting()
		s.writeLines(out)
	}()
	return s
}

func (s *lineStream) finishWriting() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written = true
	s.more.Broadcast()
}

// abandonStream drops what was not written, and lets nobody wait for it any more.
func (s *lineStream) abandonStream() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended, s.written, s.queue = true, true, nil
	s.more.Broadcast()
}

// writeLines writes until the end. A write lasts as long as the agent does not read.
func (s *lineStream) writeLines(out io.Writer) {
	for {
		s.mu.Lock()
		for len(s.queue) == 0 && !s.ended {
			s.more.Wait()
		}
		batch := s.queue
		s.queue, s.bytes = nil, 0
		over := len(batch) == 0 && s.ended
		s.more.Broadcast()
		s.mu.Unlock()
		if over {
			return
		}
		var b []byte
		for _, body := range batch {
			b = append(appendOneLine(b, body), '\n')
		}
		if _, err := out.Write(b); err != nil {
			s.mu.Lock()
			s.err, s.ended, s.queue = err, true, nil
			s.more.Broadcast()
			s.mu.Unlock()
			s.failed()
			return
		}
	}
}

func (s *lineStream) sendMessage(body []byte, must bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	room := 1
	if must {
		room = 2
	}
	if s.ended || len(s.queue) >= room*maxQueuedEvents || s.bytes+len(body) > room*maxQueuedBytes && len(s.queue) > 0 {
		return false
	}
	s.queueLine(body)
	return true
}

func (s *lineStream) queueLine(body []byte) {
	s.queue = append(s.queue, body)
	s.bytes += len(body)
	s.more.Broadcast()
}

// writeAnswer queues an answer, and waits for room: an agent that does not read holds up its own requests only.
func (s *lineStream) writeAnswer(body []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) >= maxQueuedEvents && !s.ended {
		s.more.Wait()
	}
	if !s.ended {
		s.queueLine(body)
	}
}

func (s *lineStream) endStream() {}

// closeStream ends the stream when everything is written or abandoned, and waits for that.
func (s *lineStream) closeStream() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.more.Broadcast()
	for !s.written {
		s.more.Wait()
	}
}

func (s *lineStream) writeProblem() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}
