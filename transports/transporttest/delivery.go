package transporttest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// echoes are params that a transport would change if it decoded and encoded them again: large numbers, escapes, spaces, doubled
// names.
var echoes = []string{
	`{}`,
	`{"n":9007199254740993}`, // 2^53+1
	`{"n":123456789012345678901234567890, "f":1.0, "e":1E+2}`,
	`{"s":"ä 漢字 🚀 \u0000 \u2028 \/ <&>"}`,
	"{\"raw\":\"\u2028\u2029\u200b\ufeff\"}",
	`{ "spaces" :  [ 1,2 , 3 ] }`,
	`{"dup":1,"dup":2,"order":{"z":1,"a":2}}`,
	`{"data":"data: x\n\nevent: y\r\n: z"}`, // without escaping, the empty line would end an event
	`[[],[[]],{},"",null,true]`,
}

// echoIsByteExact checks that messages arrive byte for byte, and without the line break of their frame. A transport that parses
// messages, or takes a line break inside a string for the end of a message, fails here.
func echoIsByteExact(t *testing.T, h Harness) {
	c := h.startSuite(t, Options{}).dialConn()
	for _, want := range echoes {
		m := c.s.newRequest("echo", want)
		c.sendWritten(m)
		if got := c.Answer(t, c.s.Bound, m.ID); string(got) != want {
			t.Errorf("echo of %s gave %s", want, got)
		}
	}
	for i, m := range c.Messages() {
		// Line feeds inside strings are escaped in JSON, so that a bare one can only be a frame's.
		if bytes.ContainsAny(m, "\r\n") {
			t.Errorf("message %d holds a line break, which is a frame and no part of it: %q", i, m)
		}
	}
}

// concurrentSends checks that messages of several goroutines do not mix, and that each request gets its own answer once. A
// transport whose writers are not serialised writes one message into the middle of another.
func concurrentSends(t *testing.T, h Harness) {
	// 400 requests of different lengths, several of them in each buffer.
	const callers, calls = 16, 25
	s := h.startSuite(t, Options{})
	c := s.dialConn()
	want := make([][]string, callers)
	ids := make([][]int64, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			// The pads grow, so that messages of all lengths meet in the buffers.
			for j := range calls {
				p := fmt.Sprintf(`{"caller":%d,"call":%d,"pad":%q}`, i, j, strings.Repeat("p", j*37))
				m := s.newRequest("echo", p)
				// Each goroutine has slices of its own.
				want[i], ids[i] = append(want[i], p), append(ids[i], m.ID)
				ctx, cancel := context.WithTimeout(context.Background(), s.Bound)
				if d, err := c.Send(ctx, m); err != nil || d != transports.Written {
					t.Errorf("Send: %v, %v; want written and no error", d, err)
				}
				cancel()
			}
		}()
	}
	wg.Wait()
	for i := range ids {
		for j, id := range ids[i] {
			if got := string(c.Answer(t, s.Bound, id)); got != want[i][j] {
				t.Fatalf("request %d got the answer %.100s, want %.100s", id, got, want[i][j])
			}
		}
	}
	// More messages would be answers that came twice.
	if n := len(c.Messages()); n != callers*calls {
		t.Errorf("%d messages for %d calls", n, callers*calls)
	}
}

// notificationsAndResponses checks that messages without an answer arrive once: Send does not show that, so that the peer is
// asked. A transport that waits for an answer to each message blocks here.
func notificationsAndResponses(t *testing.T, h Harness) {
	c := h.startSuite(t, Options{}).dialConn()
	c.checkAlive("Dial")
	c.sendWritten(transports.Message{Method: "notifications/suite",
		Body: []byte(`{"jsonrpc":"2.0","method":"notifications/suite"}`)})
	c.sendWritten(transports.Message{Body: []byte(`{"jsonrpc":"2.0","id":"server-7","result":{}}`)})
	// The peer plays messages concurrently: they may arrive after Send has returned.
	deadline := time.Now().Add(c.s.Bound)
	for {
		seen := c.seenByPeer()
		if seen["notifications/suite"] == 1 && seen[`response "server-7"`] == 1 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the peer has seen %v: the notification and the response are not there once", seen)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// sendDoesNotKeepTheBody checks that the caller may use the body again as soon as Send has returned. A transport that writes
// later from the caller's slice sends zeros here.
func sendDoesNotKeepTheBody(t *testing.T, h Harness) {
	c := h.startSuite(t, Options{}).dialConn()
	var ids []int64
	for range 50 {
		m := c.s.newRequest("echo", `{"mine":"`+strings.Repeat("m", 500)+`"}`)
		c.sendWritten(m)
		clear(m.Body) // the caller's memory is its own again
		ids = append(ids, m.ID)
	}
	for _, id := range ids {
		if got := c.Answer(t, c.s.Bound, id); bytes.Count(got, []byte("m")) != 501 {
			t.Fatalf("the peer got a body that was changed after Send had returned: %.60s", got)
		}
	}
}

// incomingNotifications checks that notifications before an answer arrive once each, in order where the kind keeps it. A
// transport that reads only while a request waits, or drops notifications when the sink is slow, fails here.
func incomingNotifications(t *testing.T, h Harness) {
	const n = 500
	c := h.startSuite(t, Options{}).dialConn()
	c.callPeer("notify", commandParams{N: n})
	c.checkNotes(n)
	c.checkAlive("notifications")
}

// checkNotes waits for n notes, each exactly once, and in order if the kind keeps it.
func (c *conn) checkNotes(n int) {
	t := c.s.t
	t.Helper()
	var got []int
	read := func() {
		got = got[:0]
		for _, m := range c.Messages() {
			var e envelope
			if json.Unmarshal(m, &e) == nil && e.Method == "note" {
				got = append(got, paramsOf(e).N)
			}
		}
	}
	// Without the order of one stream, answers may overtake notes, so that the test waits for the number of notes.
	c.Wait(t, c.s.Bound, fmt.Sprintf("%d notifications", n), func() bool {
		if len(c.Messages()) < n {
			return false
		}
		read()
		return len(got) >= n
	})
	// Without an ordered stream only the number of each note counts.
	count := map[int]int{}
	for i, v := range got {
		count[v]++
		if c.s.Features.OneStream && v != i {
			t.Fatalf("note %d arrived at place %d: the order of the stream is lost", v, i)
		}
	}
	for i := range n {
		if count[i] != 1 {
			t.Fatalf("note %d arrived %d times, not once", i, count[i])
		}
	}
}

// pushedNotifications checks that messages outside any answer arrive. For HTTP they come on the GET stream, which therefore must
// be open by now.
func pushedNotifications(t *testing.T, h Harness) {
	c := h.startSuite(t, Options{}).dialConn()
	// The answer comes before the notes, so that they cannot be a part of it.
	c.callPeer("push", commandParams{N: 20})
	c.checkNotes(20)
}

// endedContextWritesNothing checks that Send with an ended context writes nothing, and that its error tells a cancellation from a
// timeout. A caller may send such a message again, so that a peer which has seen it would act twice.
func endedContextWritesNothing(t *testing.T, h Harness) {
	s := h.startSuite(t, Options{})
	c := s.dialConn()
	c.checkAlive("Dial")
	// A context that was canceled, and one whose time is over.
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	expired, cancel := context.WithTimeout(context.Background(), -1)
	defer cancel()
	var ids []int64
	for range 20 {
		// Both kinds of end must keep their class, because a caller retries only one of them.
		for want, ctx := range map[messages.Class]context.Context{
			messages.ClassCanceled: canceled, messages.ClassTimeout: expired,
		} {
			m := s.newRequest("echo", nil)
			ids = append(ids, m.ID)
			d, err := c.Send(ctx, m)
			if err == nil || d != transports.NotWritten {
				t.Fatalf("Send with an ended context: %v, %v; want not written and an error", d, err)
			}
			s.checkError("Send with an ended context", err)
			if got := classOf(err); got != want {
				t.Errorf("Send with an ended context: class %q, want %q", got, want)
			}
		}
	}
	seen := c.seenByPeer()
	for _, id := range ids {
		if seen[fmt.Sprint(id)] > 0 {
			t.Errorf("request %d was reported as not written, and the peer has seen it", id)
		}
	}
}
