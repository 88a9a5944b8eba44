//go:build unix

package pipe

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// newTestOutbox writes into a pipe that the test reads.
func newTestOutbox(t *testing.T) (*Queue, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := NewWriter(w)
	if err != nil {
		t.Fatal(err)
	}
	o := &Queue{Writer: pipe, OnBroken: func() {}}
	t.Cleanup(func() {
		o.FailAll(&transports.Error{Class: messages.ClassCanceled, Text: "the test is over"})
		_ = r.Close()
		_ = w.Close()
		o.writers.Wait()
	})
	return o, r
}

type sendResult struct {
	delivery transports.Delivery
	err      error
}

func (o *Queue) sendLater(ctx context.Context, body string) <-chan sendResult {
	c := make(chan sendResult, 1)
	go func() {
		d, err := o.Send(ctx, []byte(body))
		c <- sendResult{d, err}
	}()
	return c
}

// holdsMessages reports whether the queue holds n messages within a generous time.
func (o *Queue) holdsMessages(t *testing.T, n int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		o.mu.Lock()
		got := len(o.queue)
		o.mu.Unlock()
		if got == n {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d messages wait, not %d", got, n)
		}
	}
}

// A child that does not read holds up writing, but no Send past its context: the message that is half written is
// in doubt, the ones behind it are not, and what follows is whole.
func TestOutboxWithAPipeThatIsFull(t *testing.T) {
	o, r := newTestOutbox(t)
	big := "{" + strings.Repeat("b", 1<<20) + "}"
	ctxBig, leaveBig := context.WithCancel(context.Background())
	ctxBehind, leaveBehind := context.WithCancel(context.Background())
	first := o.sendLater(ctxBig, big)
	o.holdsMessages(t, 1)
	behind := o.sendLater(ctxBehind, "{behind}")
	o.holdsMessages(t, 2)
	third := o.sendLater(context.Background(), "{third}")
	o.holdsMessages(t, 3)

	leaveBehind()
	if got := <-behind; got.delivery != transports.NotWritten || !errors.Is(got.err, context.Canceled) {
		t.Errorf("the message behind: %v, %v; want not written", got.delivery, got.err)
	}
	leaveBig()
	if got := <-first; got.delivery != transports.MaybeWritten || !errors.Is(got.err, context.Canceled) {
		t.Errorf("the message half written: %v, %v; want maybe written", got.delivery, got.err)
	}
	in := bufio.NewReader(r)
	for _, want := range []string{big, "{third}"} {
		line, err := in.ReadString('\n')
		if err != nil || strings.TrimSuffix(line, "\n") != want {
			t.Fatalf("the child reads %.40q (%d bytes), %v; want %.40q", line, len(line), err, want)
		}
	}
	if got := <-third; got.delivery != transports.Written || got.err != nil {
		t.Errorf("the third message: %v, %v; want written", got.delivery, got.err)
	}
}

// A write that panics leaves the lock with writeBatch's caller: the deferred Unlock of writeLoop must find it.
func TestWriteBatchKeepsTheLockAfterAPanic(t *testing.T) {
	o, _ := newTestOutbox(t)
	m := &queuedMessage{queue: o, body: []byte("{}"), done: make(chan struct{}, 1)}
	o.queue = append(o.queue, m)
	o.mu.Lock()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic did not reach the caller")
			}
		}()
		o.writeBatch(func([]byte) (int, error) { panic("a write that panics") })
	}()
	if o.mu.TryLock() {
		t.Error("the lock was given up")
	}
	o.mu.Unlock()
}

// fail is the connection's end: what waits ends with its reason, and with the truth about what was written.
func TestOutboxFails(t *testing.T) {
	o, _ := newTestOutbox(t)
	first := o.sendLater(context.Background(), "{"+strings.Repeat("b", 1<<20)+"}")
	o.holdsMessages(t, 1)
	behind := o.sendLater(context.Background(), "{behind}")
	o.holdsMessages(t, 2)
	why := &transports.Error{Class: messages.ClassExited, Text: "the process ended"}
	o.FailAll(why)
	if got := <-first; got.delivery != transports.MaybeWritten || got.err != why {
		t.Errorf("the message half written: %v, %v", got.delivery, got.err)
	}
	if got := <-behind; got.delivery != transports.NotWritten || got.err != why {
		t.Errorf("the message behind: %v, %v", got.delivery, got.err)
	}
	if d, err := o.Send(context.Background(), []byte("{}")); d != transports.NotWritten || err != why {
		t.Errorf("a further message: %v, %v", d, err)
	}
}

// A write into a pipe without a reader fails, and the senders learn the reason from the connection.
func TestOutboxWithoutAReader(t *testing.T) {
	o, r := newTestOutbox(t)
	broken := make(chan struct{})
	o.OnBroken = func() { close(broken) }
	_ = r.Close()
	waiting := o.sendLater(context.Background(), "{}")
	<-broken
	why := &transports.Error{Class: messages.ClassExited, Text: "the process ended with exit status 1"}
	o.FailAll(why)
	if got := <-waiting; got.delivery != transports.NotWritten || got.err != why {
		t.Errorf("%v, %v; want not written, %v", got.delivery, got.err, why)
	}
}

func TestOutboxRefusesWhatWouldBreakTheFrame(t *testing.T) {
	o, _ := newTestOutbox(t)
	for _, body := range []string{"", "{\n}", "{}\n"} {
		d, err := o.Send(context.Background(), []byte(body))
		var e *transports.Error
		if d != transports.NotWritten || !errors.As(err, &e) || e.Class != messages.ClassInvalid {
			t.Errorf("Send(%q): %v, %v", body, d, err)
		}
	}
}

// A sender can leave while its message is part of a write. If the system took nothing of it, it is never written: its
// sender has an outcome.
func TestOutboxDropsWhatWasLeftDuringAWrite(t *testing.T) {
	o := &Queue{}
	for _, body := range []string{"{1}", "{2}", "{3}", "{4}"} {
		o.queue = append(o.queue, &queuedMessage{body: []byte(body), done: make(chan struct{}, 1)})
	}
	all := slices.Clone(o.queue)
	_, count := o.fillBuffer(make([]byte, 10)) // two and a half
	if count != 3 {
		t.Fatalf("%d messages in 10 bytes", count)
	}
	for _, m := range all[:3] {
		if d := o.withdrawMessage(m); d != transports.MaybeWritten {
			t.Errorf("left during the write: %v", d)
		}
	}
	if d := o.withdrawMessage(all[3]); d != transports.NotWritten {
		t.Errorf("left behind the write: %v", d)
	}
	o.accountWritten(o.queue[:count], 5) // one and a quarter
	if len(o.queue) != 1 || o.queue[0] != all[1] || all[1].off != 1 {
		t.Errorf("%d messages are left to be written; of the second one %d bytes have been", len(o.queue), all[1].off)
	}
}

// Many senders with contexts that end at any time, small and large messages, a reader that stalls: every line arrives
// whole, what was Written exactly once, what was NotWritten never, and the order of one sender is kept.
func TestOutboxTellsTheTruth(t *testing.T) {
	const senders, each = 12, 250
	o, r := newTestOutbox(t)
	arrived := map[string]int{}
	order := map[int]int{}
	readerDone := make(chan error, 1)
	go func() {
		in := bufio.NewReaderSize(r, 32<<10)
		rnd := rand.New(rand.NewPCG(1, 2))
		for {
			line, err := in.ReadString('\n')
			if line == "{end}\n" {
				readerDone <- nil
				return
			}
			var sender, n, size int
			if _, e := fmt.Sscanf(line, "{%d %d %d ", &sender, &n, &size); e != nil || err != nil ||
				line != message(sender, n, size)+"\n" {
				readerDone <- fmt.Errorf("a broken line: %.60q, %v", line, err)
				return
			}
			if n < order[sender] {
				readerDone <- fmt.Errorf("message %d of sender %d came after %d", n, sender, order[sender])
				return
			}
			order[sender] = n
			arrived[fmt.Sprint(sender, n)]++
			if rnd.IntN(20) == 0 {
				time.Sleep(time.Duration(rnd.IntN(1e6)))
			}
		}
	}()
	var mu sync.Mutex
	said := map[string]transports.Delivery{}
	count := map[transports.Delivery]int{}
	var wg sync.WaitGroup
	for s := range senders {
		wg.Add(1)
		go func() {
			defer wg.Done()
			rnd := rand.New(rand.NewPCG(uint64(s), 7))
			for n := range each {
				size := rnd.IntN(300)
				if rnd.IntN(10) == 0 {
					size = rnd.IntN(300_000)
				}
				ctx, cancel := context.WithTimeout(context.Background(), time.Duration(rnd.IntN(5e6)))
				body := []byte(message(s, n, size))
				d, err := o.Send(ctx, body)
				clear(body) // it is ours again
				cancel()
				if (err == nil) != (d == transports.Written) {
					t.Errorf("%v with the error %v", d, err)
				}
				mu.Lock()
				said[fmt.Sprint(s, n)] = d
				count[d]++
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	if d, err := o.Send(context.Background(), []byte("{end}")); err != nil {
		t.Fatal(d, err)
	}
	select {
	case err := <-readerDone:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the last message has not arrived")
	}
	for id, d := range said {
		if n := arrived[id]; n > 1 || d == transports.Written && n != 1 || d == transports.NotWritten && n != 0 {
			t.Errorf("message %s: %v, and it arrived %d times", id, d, n)
		}
	}
	if count[transports.Written] == 0 || count[transports.NotWritten] == 0 {
		t.Errorf("nothing was tested: %v", count)
	}
	t.Log(count)
}

func message(sender, n, size int) string {
	return fmt.Sprintf("{%d %d %d %s}", sender, n, size, strings.Repeat("x", size))
}

// A writer that ends while the next sender begins must not take that one for its own.
func TestOutboxHandsOver(t *testing.T) {
	const senders, each = 64, 2000
	o, r := newTestOutbox(t)
	o.OnBroken = func() { t.Error("the pipe is taken for broken, and is read") }
	turn := make(chan struct{}, senders)
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := r.Read(buf)
			if err != nil {
				return
			}
			for range n / len("{}\n") {
				turn <- struct{}{}
			}
		}
	}()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var wg sync.WaitGroup
	for range senders {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for range each {
				if d, err := o.Send(ctx, []byte("{}")); err != nil {
					t.Errorf("%v, %v", d, err)
					return
				}
				<-turn // as after a call: the sender comes back when another one has got ahead
			}
		}()
	}
	wg.Wait()
}

// TestOutboxPosts: who posts is not waited for, learns of a failure, and gets the memory of the message back.
func TestOutboxPosts(t *testing.T) {
	o, r := newTestOutbox(t)
	if p, d, err := o.Post([]byte("{first}")); p != nil || d != transports.Written || err != nil {
		t.Errorf("into a free pipe: %v, %v, %v", p, d, err)
	}
	if p, d, err := o.Post([]byte("{\n}")); p != nil || d != transports.NotWritten || err == nil {
		t.Errorf("two lines: %v, %v, %v", p, d, err)
	}
	post := func(body string) (transports.PendingPost, []byte) {
		b := []byte(body)
		p, _, err := o.Post(b)
		if p == nil || err != nil {
			t.Fatalf("%.20s is not waiting: %v", body, err)
		}
		return p, b
	}
	big := "{" + strings.Repeat("b", 1<<20) + "}"
	half, halfBody := post(big)
	o.holdsMessages(t, 1)
	kept, _ := post("{kept}")
	gone, goneBody := post("{gone}")
	o.holdsMessages(t, 3)
	if d, err := gone.Leave(); d != transports.NotWritten || err != nil {
		t.Errorf("left in the queue: %v, %v", d, err)
	}
	begun := func() {
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
			o.mu.Lock()
			begun := o.queue[0].off > 0
			o.mu.Unlock()
			if begun {
				return
			}
		}
		t.Fatal("the first message is not begun")
	}
	begun()
	if d, err := half.Leave(); d != transports.MaybeWritten || err != nil {
		t.Errorf("left half written: %v, %v", d, err)
	}
	clear(halfBody)
	clear(goneBody)
	in := bufio.NewReader(r)
	for _, want := range []string{"{first}", big, "{kept}"} {
		line, err := in.ReadString('\n')
		if err != nil || strings.TrimSuffix(line, "\n") != want {
			t.Fatalf("the child reads %.40q (%d bytes), %v; want %.40q", line, len(line), err, want)
		}
	}
	o.holdsMessages(t, 0)
	select {
	case <-kept.Failed():
		t.Error("a message that was written has failed")
	default:
	}
	if d, err := kept.Leave(); d != transports.Written || err != nil {
		t.Errorf("written: %v, %v", d, err)
	}

	half, _ = post(big)
	begun()
	behind, _ := post("{behind}")
	why := &transports.Error{Class: messages.ClassExited, Text: "the process ended"}
	o.FailAll(why)
	<-half.Failed()
	<-behind.Failed()
	if d, err := half.Leave(); d != transports.MaybeWritten || err != why {
		t.Errorf("failed half written: %v, %v", d, err)
	}
	if d, err := behind.Leave(); d != transports.NotWritten || err != why {
		t.Errorf("failed in the queue: %v, %v", d, err)
	}
	if p, d, err := o.Post([]byte("{late}")); p != nil || d != transports.NotWritten || err != why {
		t.Errorf("after the end: %v, %v, %v", p, d, err)
	}
}
