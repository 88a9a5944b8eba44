package actors

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// TestAClosedWatcherReadsWhatItHasNotRead: a watcher that is closed is told what it had lost before, and reads the events that waited for it,
// whatever is published afterwards.
func TestAClosedWatcherReadsWhatItHasNotRead(t *testing.T) {
	h := NewHub()
	w, other := h.Watch(40), h.Watch(40)
	defer other.Close()
	publish := func(n int) {
		for range n {
			h.Publish(messages.Event{Kind: messages.EventTools, Server: strconv.FormatUint(h.seq+1, 10)})
		}
	}
	publish(100)
	w.Close()
	publish(200)
	e, err := w.Next(context.Background())
	if err != nil || e.Kind != messages.EventGap || e.Missed != 60 {
		t.Fatalf("the first event is %+v, %v; want a gap of 60", e, err)
	}
	for seq := uint64(61); seq <= 100; seq++ {
		if e, err := w.Next(context.Background()); err != nil || e.Seq != seq || e.Server != strconv.FormatUint(seq, 10) {
			t.Fatalf("event %d is %+v, %v", seq, e, err)
		}
	}
	if e, err := w.Next(context.Background()); !errors.Is(err, messages.ErrClosed) {
		t.Errorf("after the last event: %+v, %v", e, err)
	}
}

// TestTheEntriesOfAHistoryStay: who has read a history keeps what he has read.
func TestTheEntriesOfAHistoryStay(t *testing.T) {
	var h History
	for i := range historySize {
		h.Add(Entry{Text: strconv.Itoa(i)})
	}
	read := h.Entries()
	for i := range historySize {
		h.Add(Entry{Text: "later " + strconv.Itoa(i)})
	}
	for i, e := range read {
		if e.Text != strconv.Itoa(i) {
			t.Fatalf("entry %d is %q after later ones were added", i, e.Text)
		}
	}
}

// TestAWatcherOfAClosedHubEnds: one that was made after Close, of a hub that has published events, panicked at its first Next.
func TestAWatcherOfAClosedHubEnds(t *testing.T) {
	h := NewHub()
	h.Watch(0)
	h.Publish(messages.Event{})
	h.Close()
	for _, buffer := range []int{0, 1, 1000} {
		w := h.Watch(buffer)
		if _, err := w.Next(t.Context()); !errors.Is(err, messages.ErrClosed) {
			t.Errorf("Next: %v", err)
		}
		for e := range w.Events(t.Context()) {
			t.Errorf("an event: %+v", e)
		}
		w.Close()
	}
}
