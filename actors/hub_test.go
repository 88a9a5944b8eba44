package actors

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Whatever is published and read in whatever order: sequence numbers rise, what is missing is announced by exactly as
// many missed events, and nothing is told twice.
func TestWatcherAnnouncesEveryGap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := NewHub()
		limit := rapid.IntRange(1, 40).Draw(t, "buffer")
		w := h.Watch(limit)
		var published, received, last uint64
		read := func() {
			e, err := w.Next(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if e.Kind == messages.EventGap {
				received += e.Missed
				last += e.Missed
				return
			}
			received++
			if e.Seq != last+1 || e.Kind != messages.EventTools {
				t.Fatalf("event %d after %d without a gap", e.Seq, last)
			}
			last = e.Seq
		}
		for _, publish := range rapid.SliceOf(rapid.Bool()).Draw(t, "steps") {
			if publish {
				published++
				h.Publish(messages.Event{Kind: messages.EventTools})
			} else if received < published {
				read()
			}
			if n := len(h.ring) * segmentSize; n >= limit+2*segmentSize {
				t.Fatalf("there is room for %d events, the limit is %d", n, limit)
			}
		}
		if rapid.Bool().Draw(t, "closed first") {
			w.Close() // what waits can still be read, whatever is published for others
			other := h.Watch(limit)
			for range rapid.IntRange(0, 4*segmentSize).Draw(t, "published after it") {
				h.Publish(messages.Event{Kind: messages.EventLog})
			}
			other.Close()
		}
		for received < published {
			read()
		}
		w.Close()
		if _, err := w.Next(context.Background()); !errors.Is(err, messages.ErrClosed) {
			t.Fatalf("after Close: %v", err)
		}
	})
}

func TestHubWithoutWatchersBuildsNothing(t *testing.T) {
	h := NewHub()
	if h.Watched() {
		t.Error("watched by nobody")
	}
	if n := testing.AllocsPerRun(100, func() { h.Publish(messages.Event{Kind: messages.EventTools}) }); n != 0 {
		t.Errorf("%v allocations for an event that nobody sees", n)
	}
	h.Close()
	if _, err := h.Watch(0).Next(context.Background()); !errors.Is(err, messages.ErrClosed) {
		t.Errorf("a watcher of a closed hub: %v", err)
	}
}

func TestWatchersAndPublishersAtOnce(t *testing.T) {
	h := NewHub()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var readers, writers sync.WaitGroup
	for range 8 {
		w := h.Watch(16)
		readers.Go(func() {
			var last uint64
			for e := range w.Events(ctx) {
				if e.Seq < last {
					t.Errorf("%d after %d", e.Seq, last)
				}
				last = e.Seq
			}
		})
		writers.Go(func() {
			for range 1000 {
				h.Publish(messages.Event{Kind: messages.EventTools})
			}
		})
	}
	writers.Wait()
	h.Close()
	readers.Wait() // every watcher ends with the hub
}

// A publisher pays nothing for a watcher that does not keep up: no allocation, and no signal to a watcher that is awake.
func TestAWatcherThatLagsCostsNoAllocation(t *testing.T) {
	h := NewHub()
	w := h.Watch(16)
	defer w.Close()
	for range 16 {
		h.Publish(messages.Event{Kind: messages.EventTools})
	}
	if n := testing.AllocsPerRun(100, func() { h.Publish(messages.Event{Kind: messages.EventTools}) }); n != 0 {
		t.Errorf("%v allocations for an event", n)
	}
	if len(w.wake) != 0 {
		t.Error("a watcher is woken that does not wait")
	}
}

// What is told of calls may wait for a millisecond, so that a thousand calls wake a watcher once; everything else, and what
// was told before it, is read at once.
func TestCallsWakeAWatcherOnceAMillisecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := NewHub()
		w := h.Watch(4096)
		type receivedEvents struct {
			kind messages.EventKind
			at   time.Duration
		}
		heard := make(chan receivedEvents, 16)
		begin := time.Now()
		go func() {
			defer close(heard)
			for e := range w.Events(t.Context()) {
				heard <- receivedEvents{e.Kind, time.Since(begin)}
			}
		}()
		synctest.Wait()
		for range 3 {
			h.Publish(messages.Event{Kind: messages.EventCallStarted})
			time.Sleep(callLag / 4)
		}
		synctest.Wait()
		if len(heard) != 0 {
			t.Errorf("woken for calls: %v", <-heard)
		}
		time.Sleep(callLag)
		synctest.Wait()
		h.Publish(messages.Event{Kind: messages.EventCallEnded})
		h.Publish(messages.Event{Kind: messages.EventTools})
		synctest.Wait()
		h.Close()
		var got []receivedEvents
		for e := range heard {
			got = append(got, e)
		}
		started, now := receivedEvents{messages.EventCallStarted, callLag}, callLag*7/4
		want := []receivedEvents{started, started, started, {messages.EventCallEnded, now}, {messages.EventTools, now}}
		if !slices.Equal(got, want) {
			t.Errorf("told %v, want %v", got, want)
		}
	})
}

// A call costs its caller the same whether one watcher looks or ten, and no allocation.
func TestAWatcherThatWaitsCostsNoAllocation(t *testing.T) {
	h := NewHub()
	defer h.Close()
	for range 10 {
		w := h.Watch(64)
		go func() {
			for range w.Events(t.Context()) {
				continue
			}
		}()
	}
	for range 1000 { // until all memory that is reused exists
		h.Publish(messages.Event{Kind: messages.EventCallStarted})
		runtime.Gosched()
	}
	if n := testing.AllocsPerRun(1000, func() { h.Publish(messages.Event{Kind: messages.EventCallStarted}) }); n != 0 {
		t.Errorf("%v allocations for an event", n)
	}
}

// Who ends the context of Events is not told of what waits.
func TestEventsEndWithTheirContext(t *testing.T) {
	h := NewHub()
	w := h.Watch(0)
	for range 100 {
		h.Publish(messages.Event{Kind: messages.EventTools})
	}
	for _, end := range []func(){func() {}, w.Close, h.Close} {
		end()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		n := 0
		for range w.Events(ctx) {
			n++
			cancel()
		}
		if n != 1 {
			t.Errorf("%d events after the context had ended", n-1)
		}
	}
	n := 0
	for range w.Events(t.Context()) {
		n++
	}
	if n != 97 {
		t.Errorf("%d events were left to read", n)
	}
}

// What many watchers have not read is there once, while they watch and when they are closed.
func TestCloseCopiesNothing(t *testing.T) {
	for name, closed := range map[string]func(*Hub, []*Watcher){
		"the hub": func(h *Hub, _ []*Watcher) { h.Close() },
		"each watcher": func(_ *Hub, all []*Watcher) {
			for _, w := range all {
				w.Close()
			}
		},
		"each watcher, while events come": func(h *Hub, all []*Watcher) {
			for _, w := range all {
				w.Close()
				h.Publish(messages.Event{Kind: messages.EventTools})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := NewHub()
			const events = 3000
			all := make([]*Watcher, 124)
			for i := range all {
				all[i] = h.Watch(4096)
			}
			for range events {
				h.Publish(messages.Event{Kind: messages.EventTools})
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			closed(h, all)
			runtime.ReadMemStats(&after)
			if got := after.TotalAlloc - before.TotalAlloc; got > 1<<20 {
				t.Errorf("%d watchers with %d unread events each: Close took %d bytes", len(all), events, got)
			}
			for _, w := range all {
				n := 0
				for e := range w.Events(t.Context()) {
					if n++; e.Seq != uint64(n) {
						t.Fatalf("event %d is number %d", n, e.Seq)
					}
				}
				if n < events {
					t.Fatalf("%d of %d events were left to read", n, events)
				}
			}
		})
	}
}

// A watcher that needs no events about calls leaves calls without them, until another one wants them.
func TestCallsAreWatchedByThoseWhoWantThem(t *testing.T) {
	h := NewHub()
	check := func(when string, watched, calls bool) {
		t.Helper()
		if h.Watched() != watched || h.CallsWatched() != calls {
			t.Errorf("%s: watched %v, calls watched %v", when, h.Watched(), h.CallsWatched())
		}
	}
	servers := h.Watch(0).WithoutCalls()
	check("a watcher without calls", true, false)
	servers.WithoutCalls()
	everything := h.Watch(0)
	check("and one with them", true, true)
	everything.Close()
	everything.Close()
	everything.WithoutCalls()
	check("after its end", true, false)
	h.Publish(messages.Event{Kind: messages.EventTools})
	if e, err := servers.Next(t.Context()); err != nil || e.Kind != messages.EventTools {
		t.Errorf("the watcher without calls got %+v, %v", e, err)
	}
	servers.Close()
	check("after the end of both", false, false)
	h.Watch(0)
	check("a new watcher", true, true)
}
