package transporttest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// bigResult checks messages around the sizes of buffers: a page, a pipe, one byte more than a MiB, and several MiB. A transport
// that takes one read for one message loses the rest of the larger ones.
func bigResult(t *testing.T, h Harness) {
	c := h.startSuite(t, Options{}).dialConn()
	// The answer's pad is x throughout, so that a lost or doubled piece shows in the length or in another byte.
	for _, n := range []int{4 << 10, 64 << 10, 1<<20 + 1, 5 << 20} {
		m := c.s.newRequest("big", commandParams{Bytes: n})
		c.sendWritten(m)
		got := c.Answer(t, c.s.Bound, m.ID)
		if len(got) < n-200 || len(got) > n || len(bytes.Trim(got, `"x`)) > 0 {
			t.Errorf("a result of a %d byte message arrived with %d bytes, or changed", n, len(got))
		}
	}
}

// bigRequest checks that a message which is larger than every buffer on the way goes out whole. A transport that ignores a short
// write sends a part of it.
func bigRequest(t *testing.T, h Harness) {
	c := h.startSuite(t, Options{}).dialConn()
	// The result must come back as it was sent, byte for byte.
	want := `{"big":"` + strings.Repeat("0123456789abcdef", 128<<10) + `"}` // 2 MiB
	m := c.s.newRequest("echo", want)
	c.sendWritten(m)
	if got := c.Answer(t, c.s.Bound, m.ID); string(got) != want {
		t.Errorf("echo of %d bytes gave %d bytes, or other ones", len(want), len(got))
	}
}

// limitIsExact checks that a message of exactly MaxMessage bytes arrives, and that one byte more does not. The frame around a
// message (a newline, an event's field) must not count.
func limitIsExact(t *testing.T, h Harness) {
	// No power of two, so that no buffer ends there by chance.
	const limit = 100_000
	c := h.startSuite(t, Options{MaxMessage: limit}).dialConn()
	m := c.s.newRequest("big", commandParams{Bytes: limit})
	c.sendWritten(m)
	c.Answer(t, c.s.Bound, m.ID)
	if got := c.Messages()[0]; len(got) != limit {
		t.Fatalf("the peer's message has %d bytes, not %d", len(got), limit)
	}
	// The first byte too much must not be cut off and the rest delivered.
	c.sendOversized(limit+1, 1)
	c.checkAlive("a message of one byte too much")
}

// oversizedCostsItself checks that a message over the limit is reported and dropped, and that the connection goes on. A transport
// that reads the whole message into memory would pass; one that closes the connection, or takes the rest of the message for the
// next one, fails.
func oversizedCostsItself(t *testing.T, h Harness) {
	const limit = 64 << 10
	c := h.startSuite(t, Options{MaxMessage: limit}).dialConn()
	// The last one is larger than every buffer, so that most of it must be dropped while it comes.
	for i, n := range []int{limit + 1, 3 * limit, 20 << 20} {
		c.sendOversized(n, i+1)
		c.checkAlive(fmt.Sprintf("a message of %d bytes", n))
	}
	if n := len(c.OversizedMessages()); n != 3 {
		t.Errorf("3 oversized messages were reported %d times", n)
	}
	for _, m := range c.Messages() {
		if len(m) > limit {
			t.Errorf("a message of %d bytes came through a limit of %d", len(m), limit)
		}
	}
}

// sendOversized asks for a response of n bytes, which is over the limit, waits until it was reported as the count-th one, and
// checks the report.
func (c *conn) sendOversized(n, count int) {
	t := c.s.t
	t.Helper()
	m := c.s.newRequest("big", commandParams{Bytes: n})
	ctx, cancel := context.WithTimeout(context.Background(), c.s.Bound)
	defer cancel()
	// A kind whose Send waits for the answer may return an error, because none has arrived.
	d, err := c.Send(ctx, m)
	switch {
	// The request itself has arrived, whatever became of its answer.
	case err == nil && d != transports.Written, err != nil && d == transports.NotWritten:
		t.Errorf("Send of a request with an oversized answer: %v, %v", d, err)
	case err != nil:
		c.s.checkError("Send of a request with an oversized answer", err)
	}
	c.Wait(t, c.s.Bound, "the oversized message", func() bool { return len(c.OversizedMessages()) >= count })
	o := c.OversizedMessages()[count-1]
	if len(o.Head) == 0 || len(o.Head) > 4<<10 || len(o.Tail) > 4<<10 || o.Size < int64(n) {
		t.Errorf("oversized: head %d, tail %d, size %d; want at most 4096, at most 4096, at least %d",
			len(o.Head), len(o.Tail), o.Size, n)
	}
	// A session finds the call that has failed by the id in the head.
	if want := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,`, m.ID); !bytes.Contains(o.Head, []byte(want)) {
		t.Errorf("the head does not show whose answer it was: %.100q", o.Head)
	}
	if c.Answers(m.ID) > 0 {
		t.Errorf("the oversized message was delivered too")
	}
}

// reportedNoise checks that lines which are no messages reach Noise, cut to 256 bytes, and do not harm the connection. Servers
// print banners and debug output to standard output, and a client that gives up over them cannot be used with them.
func reportedNoise(t *testing.T, h Harness) {
	c := h.startSuite(t, Options{}).dialConn()
	// Lines as real servers write them to standard output: logs, colours, values printed by accident.
	lines := []string{"Server listening", "  [not json", "\x1b[31mred\x1b[0m", "undefined", "null", "42", "Debugger {}",
		strings.Repeat("long", 1000)}
	// A line that begins with { or [ may be a message for all that a transport can know.
	noisy := slices.DeleteFunc(slices.Clone(lines), func(l string) bool {
		return strings.HasPrefix(strings.TrimSpace(l), "[")
	})
	c.callPeer("noise", commandParams{Lines: lines})
	c.Wait(t, c.s.Bound, "the noise", func() bool { return len(c.NoiseLines()) >= len(noisy) })
	for i, got := range c.NoiseLines() {
		want := noisy[i][:min(len(noisy[i]), 256)]
		if got != want {
			t.Errorf("noise %d is %q, want %q", i, got, want)
		}
	}
	if n := c.Info().Noise; n != int64(len(noisy)) {
		t.Errorf("Info counts %d lines of noise, not %d", n, len(noisy))
	}
	c.checkAlive("noise")
}

// silentPeer checks that a Send whose answer does not come ends with its context. Other calls on the connection must not notice
// it.
func silentPeer(t *testing.T, h Harness) {
	s := h.startSuite(t, Options{})
	c := s.dialConn()
	s.runWithin("Send to a silent peer", func() {
		// The time is spent in full by kinds that wait for the answer.
		_, d, err := c.sendWithLittleTime("silent", 0)
		switch {
		// The peer has the request, so that it must not count as one that may be sent again.
		case s.Features.SendWaits && (err == nil || d == transports.NotWritten):
			t.Errorf("Send to a silent peer: %v, %v; want an error, and not: not written", d, err)
		case !s.Features.SendWaits && (err != nil || d != transports.Written):
			t.Errorf("Send to a silent peer: %v, %v; want written", d, err)
		case err != nil:
			s.checkError("Send to a silent peer", err)
			if got := classOf(err); got != messages.ClassTimeout {
				t.Errorf("Send to a silent peer: class %q, want timeout", got)
			}
		}
	})
	c.checkAlive("a silent call")
}

// sendWithLittleTime sends a request with a context that ends after a moment, and returns that moment. A busy machine may not have written
// the request by then: it is sent again with more time, as long as that is so. The peer is asked to answer after times moments.
func (c *conn) sendWithLittleTime(method string, times int) (moment time.Duration, d transports.Delivery, err error) {
	for moment = 30 * time.Millisecond; ; moment *= 2 {
		ctx, cancel := context.WithTimeout(context.Background(), moment)
		d, err = c.Send(ctx, c.s.newRequest(method, commandParams{MS: times * int(moment.Milliseconds())}))
		if cancel(); err == nil || d != transports.NotWritten || moment > 2*time.Second {
			return moment, d, err
		}
	}
}

// lateAnswer checks that an answer which comes after the end of Send's context is delivered all the same, where Send does not
// wait for it. A transport that binds the connection, or the answer, to the context of Send loses it.
func lateAnswer(t *testing.T, h Harness) {
	s := h.startSuite(t, Options{})
	c := s.dialConn()
	ctx, cancel := context.WithCancel(context.Background())
	m := s.newRequest("late", commandParams{MS: 50})
	if d, err := c.Send(ctx, m); err != nil || d != transports.Written {
		t.Fatalf("Send: %v, %v", d, err)
	}
	cancel() // Send has returned: its context has no influence on the answer
	c.checkAlive("an ended context")
	c.Answer(t, s.Bound, m.ID)
	if n := c.Answers(m.ID); n != 1 {
		t.Errorf("%d answers, not one", n)
	}
}

// lateAnswerIsCutShort checks that a Send which waits for its answer returns at the end of its context, and that the late answer
// harms nothing. For HTTP the response's stream is closed, and the connection below it must stay usable.
func lateAnswerIsCutShort(t *testing.T, h Harness) {
	s := h.startSuite(t, Options{})
	c := s.dialConn()
	// The answer is due long after the context has ended.
	moment, d, err := c.sendWithLittleTime("late", 10)
	id := s.next.Load()
	if err == nil || d == transports.NotWritten {
		t.Errorf("Send: %v, %v; want an error, and not: not written", d, err)
	}
	time.Sleep(10*moment + 100*time.Millisecond) // until the time of the answer is over
	c.checkAlive("an answer that nobody waits for")
	if n := c.Answers(id); n > 1 {
		t.Errorf("%d answers", n)
	}
}

// stallSize is the number of bytes that fills every buffer between Send and a peer that does not read.
const stallSize = 8 << 20

// stalledPeer checks that Send does not block past its context when the peer does not read, and that each message's Delivery is
// true: the peer must not see one that is NotWritten, once it reads again. A server that computes for a second reads nothing
// meanwhile; a client must survive that, and must know which requests it may repeat.
func stalledPeer(t *testing.T, h Harness) {
	s := h.startSuite(t, Options{})
	c := s.dialConn()
	requests := make([]transports.Message, 4)
	big := strings.Repeat("s", stallSize)
	for i := range requests {
		requests[i] = s.newRequest("echo", `{"big":"`+big+`"}`)
	}
	// The stall is longer than the contexts below, and ends before the bound.
	c.callPeer("stall", commandParams{MS: 3000})
	type result struct {
		id  int64
		d   transports.Delivery
		err error
	}
	results := make(chan result, len(requests))
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	for _, m := range requests {
		go func() {
			d, err := c.Send(ctx, m)
			results <- result{m.ID, d, err}
		}()
	}
	count := map[transports.Delivery]int{}
	var sent []result
	for range cap(results) {
		select {
		case r := <-results:
			count[r.d]++
			sent = append(sent, r)
			if r.err == nil || r.d == transports.Written {
				t.Errorf("Send of %d bytes to a peer that does not read: %v, %v", stallSize, r.d, r.err)
				continue
			}
			s.checkError("Send to a stalled peer", r.err)
			if got := classOf(r.err); got != messages.ClassTimeout {
				t.Errorf("Send to a stalled peer: class %q, want timeout", got)
			}
		case <-time.After(s.Bound):
			t.Fatalf("Send blocks past its context: %d of %d returned", len(sent), cap(results))
		}
	}
	// Only one message at a time can be half written on a stream; the others were still in the queue.
	if s.Features.OneStream && (count[transports.MaybeWritten] > 1 || count[transports.NotWritten] < cap(results)-1) {
		t.Errorf("one stream, and %v: only the message being written can be in doubt", count)
	}
	c.checkAlive("a stall") // the peer reads again
	seen := c.seenByPeer()
	for _, r := range sent {
		if n := seen[fmt.Sprint(r.id)]; r.d == transports.NotWritten && n > 0 || n > 1 {
			t.Errorf("request %d was reported as %v, and the peer has seen it %d times", r.id, r.d, n)
		}
	}
}

// stalledPeerAndClose checks that Close ends Sends that block because the peer does not read. Their goroutines would otherwise
// wait for ever for a server that hangs.
func stalledPeerAndClose(t *testing.T, h Harness) {
	s := h.startSuite(t, Options{})
	c := s.dialConn()
	// An hour: only Close can end these Sends.
	c.callPeer("stall", commandParams{MS: 3_600_000})
	returned := make(chan error, 3)
	for range cap(returned) {
		m := s.newRequest("echo", `{"big":"`+strings.Repeat("s", stallSize)+`"}`)
		go func() {
			d, err := c.Send(context.Background(), m)
			if d == transports.Written {
				err = errors.New("written to a peer that does not read: Features.Stall says that it blocks its writers")
			} else {
				s.checkError("Send during Close", err)
				err = nil
			}
			returned <- err
		}()
	}
	// Too short a sleep makes the test easier, never wrong.
	time.Sleep(100 * time.Millisecond) // let them block
	s.runWithin("Close while the peer does not read", func() { c.closeAndCheck() })
	for range cap(returned) {
		select {
		case err := <-returned:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(s.Bound):
			t.Fatal("a Send has not returned after Close")
		}
	}
}
