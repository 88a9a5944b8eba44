package sim

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/peer"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/procinfo"
)

func TestTimelineOrder(t *testing.T) {
	var l timeline
	var did []string
	plan := func(at time.Duration, server, name string) {
		l.planAction(at, server, func() { did = append(did, name) })
	}
	plan(2, "b", "4")
	plan(1, "b", "2")
	plan(1, "a", "1")
	plan(1, "b", "3")
	plan(2, "c", "5")
	if l.takeDue(0) != nil {
		t.Error("something is due before its time")
	}
	if at, ok := l.nextTime(); at != 1 || !ok {
		t.Errorf("the next is due at %v, %v", at, ok)
	}
	for do := l.takeDue(2); do != nil; do = l.takeDue(2) {
		do()
	}
	if got := strings.Join(did, ""); got != "12345" {
		t.Errorf("done in the order %s", got)
	}
	if _, ok := l.nextTime(); ok {
		t.Error("something is left")
	}
}

// TestInboxOrder: who was first to hand something over does not show, as far as it is chance.
func TestInboxOrder(t *testing.T) {
	a, b := &simServer{server: scenario.Server{Name: "a"}}, &simServer{server: scenario.Server{Name: "b"}}
	conns := map[string]*pipe{}
	for i, name := range []string{"a1", "a2", "b1"} {
		c := &pipe{}
		c.number = i + 1
		conns[name] = c
	}
	box := inbox{wake: func() {}}
	put := func(h *simServer, c string, call string) {
		box.addItem(item{host: h, conn: conns[c], kind: itemSent, x: &exchange{method: "x", call: call, id: c + call}})
	}
	answer := func(c, body string) {
		box.addItem(item{host: a, conn: conns[c], kind: itemSent, x: &exchange{id: c + body, body: []byte(body)}})
	}
	put(b, "b1", "c9")
	put(a, "a2", "c11")
	put(a, "a2", "")
	put(a, "a2", "c2")
	answer("a2", "two")
	answer("a2", "one")
	put(a, "a1", "c3")
	// Requests about tasks have other ids in each run.
	for _, about := range []string{"cancel task-10", "get task-9", "cancel task-9"} {
		method, task, _ := strings.Cut(about, " ")
		box.addItem(item{host: b, conn: conns["b1"], kind: itemSent, x: &exchange{method: "tasks/" + method, id: about, body: []byte(`{"taskId":"` + task + `"}`)}})
	}
	put(b, "b1", "c7")
	// What subscribes, and what ends a request, stays where it is; levels of log messages stay in their order.
	for i, text := range []string{"resources/unsubscribe", "notifications/cancelled", "tools/list", "logging/setLevel", "resources/list", "logging/setLevel"} {
		x := &exchange{method: text, id: strconv.Itoa(i), body: []byte(`{"params":{"level":` + strconv.Itoa(9-i) + `}}`)}
		if text == "notifications/cancelled" {
			x.id = ""
		}
		box.addItem(item{host: a, conn: conns["a1"], kind: itemSent, x: x})
	}
	var got []string
	for _, it := range box.takeItems(nil) {
		got = append(got, it.x.id)
	}
	if want := []string{"3", "0", "", "5", "4", "2", "a1c3", "a2one", "a2two", "a2", "a2c2", "a2c11", "b1c7", "b1c9", "cancel task-9", "get task-9", "cancel task-10"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if len(box.takeItems(nil)) != 0 {
		t.Error("an item was given twice")
	}
}

// quiet is a far end that says nothing.
type quiet struct{ got []string }

func (q *quiet) onDialed(c conn)                 { c.acceptOpening("") }
func (q *quiet) onSent(_ conn, x *exchange)      { q.got = append(q.got, string(x.body[:1])) }
func (*quiet) onStreamWanted(conn, *exchange)    {}
func (q *quiet) onAbandoned(conn, *exchange)     {}
func (q *quiet) onClosing(conn, bool)            {}
func (q *quiet) onReleased(conn)                 {}
func (q *quiet) onMeasured(conn, procinfo.Usage) {}

// deafSink is a sink that ignores everything.
type deafSink struct{}

func (deafSink) Message([]byte)                 {}
func (deafSink) Oversized(_, _ []byte, _ int64) {}
func (deafSink) Noise([]byte)                   {}
func (deafSink) Down(error)                     {}

// TestWorkOfAPipe: the processes tell nothing until they are busy, and from then on how they spent their time, until they end. On seed 2237
// one that had ended kept the start gate narrow.
func TestWorkOfAPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := newTransport(messages.Stdio, "x", messages.Spec{}, &quiet{}).Dial(t.Context(), deafSink{})
		if err != nil {
			t.Fatal(err)
		}
		p := c.(*pipe)
		if used, err := p.Work(); !errors.Is(err, procinfo.ErrUnknown) {
			t.Errorf("before it is busy: %+v %v", used, err)
		}
		p.setBusy(0.25, 0.75)
		time.Sleep(4 * time.Second)
		if used, err := p.Work(); err != nil || used.CPU != time.Second || used.CPUWait != 3*time.Second {
			t.Errorf("after 4s: %+v %v", used, err)
		}
		p.endRemote(ending{text: "the process ended with exit status 1"})
		time.Sleep(time.Second)
		if used, err := p.Work(); !errors.Is(err, os.ErrProcessDone) {
			t.Errorf("after its end: %+v %v", used, err)
		}
	})
}

// TestFullPipe: a process that does not read holds up who writes more than its pipe takes. What was begun may have arrived,
// what waited behind it has not.
func TestFullPipe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &quiet{}
		c, err := newTransport(messages.Stdio, "x", messages.Spec{}, q).Dial(t.Context(), deafSink{})
		if err != nil {
			t.Fatal(err)
		}
		p := c.(*pipe)
		p.setReading(false)
		message := func(first string, size int) transports.Message {
			return transports.Message{Body: []byte(first + strings.Repeat("x", size-1))}
		}
		if d, err := c.Send(t.Context(), message("1", 60<<10)); d != transports.Written || err != nil {
			t.Errorf("what fits: %v %v", d, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		results := make(chan transports.Delivery, 2)
		for _, first := range []string{"2", "3"} {
			go func() {
				d, err := c.Send(ctx, message(first, 10<<10))
				var e *transports.Error
				if !errors.As(err, &e) || e.Class != messages.ClassTimeout {
					t.Errorf("%v", err)
				}
				results <- d
			}()
			synctest.Wait()
		}
		time.Sleep(2 * time.Second)
		if a, b := <-results, <-results; min(a, b) != transports.NotWritten || max(a, b) != transports.MaybeWritten {
			t.Errorf("what does not fit: %v and %v", a, b)
		}
		p.setReading(true)
		if d, err := c.Send(t.Context(), message("4", 10<<10)); d != transports.Written || err != nil {
			t.Errorf("after it reads again: %v %v", d, err)
		}
		if got := strings.Join(q.got, ""); got != "124" {
			t.Errorf("arrived: %s", got)
		}
		began := time.Now()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took != 4*time.Second || c.Info().Exit != "signal: killed" {
			t.Errorf("a process that ignores everything was killed after %v: %s", took, c.Info().Exit)
		}
	})
}

// TestLines: what a process writes is cut as package transports/internal/lines cuts it.
func TestLines(t *testing.T) {
	var got []string
	l := lineSplitter{limit: 20,
		onMessage:   func(b []byte) { got = append(got, "message "+string(b)) },
		onNoise:     func(b []byte) { got = append(got, "noise "+string(b)) },
		onOversized: func(_ []byte, size int64) { got = append(got, "large") },
	}
	for _, piece := range []string{"{\"a\":", "1}\r\n\nhel", "lo\n", "[1]\n{\"long\":\"", strings.Repeat("x", 40), "\"}\n\xef\xbb\xbf{}\n", `{"last":1}`} {
		if !l.feedBytes([]byte(piece)) {
			t.Error("a line without an end")
		}
	}
	l.endStream()
	want := []string{`message {"a":1}`, "noise hello", "message [1]", "large", "message {}", `message {"last":1}`}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	got = nil
	l.feedBytes([]byte(`{"cut":`))
	l.endStream()
	if !slices.Equal(got, []string{`noise {"cut":`}) {
		t.Errorf("%q", got)
	}
}

func TestADrippedMessageArrivesWithItsLastChunk(t *testing.T) {
	if got := delayOf(peer.Send{After: time.Second, Body: bytes.Repeat([]byte("x"), 10), Chunk: 5, Every: time.Second}); got != 2*time.Second {
		t.Errorf("a message that is dripped has arrived after %v", got)
	}
}

func TestWordsOfAnswers(t *testing.T) {
	text := []byte(`{"content":[{"type":"text","text":"{\"call\":\"c17\",\"server\":\"s\",\"conn\":3,\"value\":12}"}]}`)
	if n := numberAfter(text, `\"conn\":`); n != 3 {
		t.Errorf("conn %d", n)
	}
	if n := numberAfter(text, `\"nothing\":`); n != 0 {
		t.Errorf("nothing %d", n)
	}
	if w := textAfter(text, `\"call\":\"`, '\\'); w != "c17" {
		t.Errorf("call %q", w)
	}
	if w := callOf([]byte(`{"params":{"arguments":{"call":"c5","size":1}}}`)); w != "c5" {
		t.Errorf("call %q", w)
	}
}
