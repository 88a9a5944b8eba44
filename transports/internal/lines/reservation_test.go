package lines

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/budget"
	"github.com/mcpvisor/mcpvisor/transports/internal/eventstream"
	"github.com/mcpvisor/mcpvisor/transports/internal/incoming"
)

// sinkLog collects the calls of a sink.
type sinkLog struct{ log []string }

func (k *sinkLog) Message(b []byte) { k.log = append(k.log, fmt.Sprintf("message %d", len(b))) }
func (k *sinkLog) Oversized(_, _ []byte, size int64) {
	k.log = append(k.log, fmt.Sprintf("oversized %d", size))
}
func (k *sinkLog) Discarded(_, _ []byte, size int64) {
	k.log = append(k.log, fmt.Sprintf("discarded %d", size))
}
func (k *sinkLog) Noise([]byte) {}
func (k *sinkLog) Down(error)   {}

// receivers are the ways in which a message of n bytes is received.
var receivers = map[string]func(n int, h incoming.Reservation, to *sinkLog){
	"lines": func(n int, h incoming.Reservation, to *sinkLog) {
		l := &Splitter{Limit: 64 << 20, EndlessSize: EndlessLine(64 << 20), Reservation: h, OnMessage: to.Message, OnNoise: to.Noise,
			OnOversized: func(o *incoming.Oversized) { incoming.ReportDiscarded(to, o) }}
		for piece := range slices.Chunk([]byte(jsonObject(n)), 60<<10) {
			l.Feed(piece)
		}
		l.Feed([]byte("\n{}\n"))
		l.EndStream()
	},
	"body of a known length": func(n int, h incoming.Reservation, to *sinkLog) { receiveBody(int64(n), n, h, to) },
	"body":                   func(n int, h incoming.Reservation, to *sinkLog) { receiveBody(-1, n, h, to) },
	"event": func(n int, h incoming.Reservation, to *sinkLog) {
		r := eventstream.NewReader(strings.NewReader("data: "+jsonObject(n)+"\n\ndata: {}\n\n"), 64<<20, h)
		defer r.ReleaseBuffers()
		for e, err := r.NextEvent(); err == nil; e, err = r.NextEvent() {
			if e.Oversized != nil {
				incoming.ReportDiscarded(to, e.Oversized)
			} else {
				to.Message(e.Data)
			}
		}
	},
}

func jsonObject(n int) string { return `{"x":"` + strings.Repeat("x", n-8) + `"}` }

func receiveBody(length int64, n int, h incoming.Reservation, to *sinkLog) {
	msg, big, err := incoming.ReadBody(strings.NewReader(jsonObject(n)), length, 64<<20, h)
	if err != nil {
		panic(err)
	}
	if big != nil {
		incoming.ReportDiscarded(to, big)
	} else {
		to.Message(msg)
	}
	to.Message([]byte("{}"))
}

// TestAMessageWaitsForMemory: a message that the server's share has no room for waits, is received when others let go in time, and
// else is discarded and told. Nothing is held afterwards; what comes behind it is received.
func TestAMessageWaitsForMemory(t *testing.T) {
	const n = 12 << 20
	for name, receive := range receivers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := budget.New(64 << 20)
				share, other := b.Open("s"), b.Open("other")
				run := func(ended <-chan struct{}) (string, time.Duration) {
					var to sinkLog
					began := time.Now()
					receive(n, incoming.Reservation{Share: share, ConnEnded: ended}, &to)
					if share.Held() != 0 {
						t.Errorf("%d bytes are held afterwards", share.Held())
					}
					return strings.Join(to.log, ", "), time.Since(began)
				}
				if got, took := run(nil); got != fmt.Sprintf("message %d, message 2", n) || took != 0 {
					t.Errorf("with room: %s after %v", got, took)
				}
				for other.Take(1<<20) == nil {
				}
				third := b.Open("third") // makes the fair shares smaller
				for third.Take(1<<20) == nil {
				}
				more := make([]*budget.Share, 20) // and smaller
				for i := range more {
					more[i] = b.Open("more")
				}
				if got, took := run(nil); got != fmt.Sprintf("discarded %d, message 2", n) || took != 2*time.Second {
					t.Errorf("without room: %s after %v", got, took)
				}
				go func() {
					time.Sleep(time.Second)
					for _, s := range slices.Concat(more, []*budget.Share{other, third}) {
						s.Close()
					}
				}()
				if got, took := run(nil); got != fmt.Sprintf("message %d, message 2", n) || took != time.Second {
					t.Errorf("with room after a second: %s after %v", got, took)
				}
				ended := make(chan struct{})
				close(ended)
				for range 8 {
					for fill := b.Open("fill"); fill.Take(1<<20) == nil; {
					}
				}
				if got, took := run(ended); !strings.HasPrefix(got, "discarded") || took != 0 {
					t.Errorf("after the end of the connection: %s after %v", got, took)
				}
			})
		})
	}
}

// TestTwoHalfMessagesEnd: two servers, each of which has half a message and needs what the other one holds, do not wait for ever.
func TestTwoHalfMessagesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(20 << 20)
		results := make(chan sinkLog, 8)
		for range 8 {
			share := b.Open("s")
			go func() {
				var to sinkLog
				receivers["lines"](10<<20, incoming.Reservation{Share: share}, &to)
				results <- to
			}()
		}
		for range 8 {
			if got := (<-results).log; len(got) != 2 {
				t.Errorf("%q", got)
			}
		}
		if b.Total() != 0 {
			t.Errorf("%d bytes are left", b.Total())
		}
	})
}

// TestAPauseEndsWithTheConnection: a flooding server is left unread, and its connection's end does not wait for that.
func TestAPauseEndsWithTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		share := budget.New(0).Open("s")
		share.Charge(budget.Burst+time.Millisecond, 0, time.Now())
		began := time.Now()
		incoming.TakePause(share, nil)
		if d := time.Since(began); d != 16*time.Millisecond {
			t.Errorf("paused for %v", d)
		}
		incoming.TakePause(share, nil)
		incoming.TakePause(nil, nil)
		if d := time.Since(began); d != 16*time.Millisecond {
			t.Errorf("paused again, until %v", d)
		}
		share.Charge(time.Minute, 0, time.Now())
		ended := make(chan struct{})
		close(ended)
		incoming.TakePause(share, ended)
		if d := time.Since(began); d != 16*time.Millisecond {
			t.Errorf("paused in spite of the end, until %v", d)
		}
	})
}
