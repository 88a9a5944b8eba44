package session_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// versioned is a server whose only resource is named after the number of changes of its list. It answers after some
// time.
type versioned struct {
	wire     *wire
	changes  atomic.Int64
	notified atomic.Int64 // changes that the session has been notified of
	fetches  atomic.Int64 // lists that were asked for
	open     atomic.Int64 // lists that are being answered
	most     atomic.Int64
	think    time.Duration
}

func (v *versioned) answer(_ context.Context, m transports.Message) (transports.Delivery, error) {
	switch m.Method {
	case "initialize":
		v.wire.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":"2025-11-25",`+
			`"capabilities":{"resources":{"listChanged":true}}}}`, m.ID))
	case "resources/list":
		v.fetches.Add(1)
		v.most.Store(max(v.most.Load(), v.open.Add(1)))
		now := v.changes.Load()
		time.AfterFunc(v.think, func() {
			v.open.Add(-1)
			v.wire.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"resources":[{"uri":"v:%d"}]}}`, m.ID, now))
		})
	}
	return transports.Written, nil
}

func (v *versioned) change() {
	v.changes.Add(1)
	v.wire.receive(`{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`)
	v.notified.Add(1)
}

func (v *versioned) dial(t *testing.T, cfg session.Config) *session.Session {
	t.Helper()
	v.wire = &wire{}
	v.wire.onSend = v.answer
	cfg.Era = messages.EraLegacy
	s, err := session.Dial(t.Context(), v.wire, cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Handshake(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestListCache checks the guarantees of a cached list with many callers and many changes: one fetch at a time, and
// no caller gets a list that is older than the newest change that it could know. The time is virtual, so that every
// order of the two comes up without waiting.
func TestListCache(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &versioned{think: 7 * time.Millisecond}
		s := v.dial(t, session.Config{})
		var all sync.WaitGroup
		for caller := range 20 {
			all.Go(func() {
				for round := range 200 {
					time.Sleep(time.Duration((caller*7+round*13)%29) * time.Millisecond)
					known := v.notified.Load()
					list, err := s.Resources(t.Context())
					if err != nil || len(list.Items) != 1 {
						t.Errorf("%+v, %v", list, err)
						return
					}
					var got int64
					if _, err := fmt.Sscanf(list.Items[0].URI, "v:%d", &got); err != nil || got < known {
						t.Errorf("a list of version %d, and %d was known before", got, known)
					}
				}
			})
		}
		for i := range 100 { // some follow each other within one fetch
			time.Sleep(time.Duration(i*5%31) * time.Millisecond)
			v.change()
		}
		all.Wait()
		if most := v.most.Load(); most != 1 {
			t.Errorf("%d fetches at once", most)
		}
		if fetches := v.fetches.Load(); fetches > 201 {
			t.Errorf("%d fetches for 100 changes", fetches)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		<-s.Released()
	})
}

// TestAListOutlivesItsCaller: a fetch belongs to the session. It ends with its answer, with its bound, or with the
// session.
func TestAListOutlivesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := &versioned{think: time.Second}
		s := v.dial(t, session.Config{})
		ctx, leave := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer leave()
		if _, err := s.Resources(ctx); messages.ClassOf(err) != messages.ClassTimeout {
			t.Errorf("a caller that left: %v", err)
		}
		time.Sleep(time.Second)
		if _, err := s.Resources(t.Context()); err != nil || v.fetches.Load() != 1 {
			t.Errorf("%d fetches, %v", v.fetches.Load(), err)
		}
		// A server that does not answer.
		v.think = time.Hour
		v.change()
		began := time.Now()
		_, err := s.Resources(t.Context())
		if took := time.Since(began); messages.ClassOf(err) != messages.ClassTimeout || took != 2*time.Minute {
			t.Errorf("after %v: %v", took, err)
		}
		// The end of the session.
		end := make(chan error)
		go func() {
			_, err := s.Resources(t.Context())
			end <- err
		}()
		synctest.Wait()
		v.wire.end(&transports.Error{Class: messages.ClassNetwork, Text: "gone"})
		if err := <-end; messages.OutcomeOf(err) != messages.OutcomeUnknown || messages.ClassOf(err) != messages.ClassNetwork {
			t.Errorf("the session ended: %v", err)
		}
		<-s.Released()
		time.Sleep(time.Hour) // what the server still has to say
	})
}

// TestAListChangesBetweenItsPages: a server refuses the cursor of a page from before the change, and the caller gets the new list. One that goes on to
// change is not asked for ever.
func TestAListChangesBetweenItsPages(t *testing.T) {
	for name, c := range map[string]struct {
		changes     int64
		isAnnounced bool
		wantFetches int64
		wantList    bool
	}{
		"once": {1, true, 2, true}, "four times": {4, true, 5, true}, "for ever": {1000, true, 6, false}, "without a word": {1, false, 1, false},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			v := &versioned{}
			s := v.dial(t, session.Config{})
			v.wire.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
				now := v.changes.Load()
				switch cursor := fmt.Sprintf(`"cursor":"of %d"`, now); {
				case m.Method != "resources/list":
				case !strings.Contains(string(m.Body), `"cursor"`):
					v.fetches.Add(1)
					v.wire.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"resources":[{"uri":"v:%d"}],"nextCursor":"of %d"}}`, m.ID, now, now))
					if now < c.changes && c.isAnnounced {
						v.change()
					} else if now < c.changes {
						v.changes.Add(1)
					}
				case strings.Contains(string(m.Body), cursor):
					v.wire.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"resources":[{"uri":"w:%d"}]}}`, m.ID, now))
				default:
					v.wire.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32602,"message":"Invalid cursor"}}`, m.ID))
				}
				return transports.Written, nil
			}
			list, err := s.Resources(t.Context())
			if c.wantList != (err == nil) || v.fetches.Load() != c.wantFetches {
				t.Errorf("%d fetches, %v, want %d", v.fetches.Load(), err, c.wantFetches)
			}
			if want := fmt.Sprintf("v:%d", c.changes); c.wantList && (len(list.Items) != 2 || list.Items[0].URI != want) {
				t.Errorf("%+v, want %s and one more", list.Items, want)
			}
			if err := s.Close(t.Context()); err != nil {
				t.Error(err)
			}
			<-s.Released()
		})
	}
}

// TestUpdateStorm: a storm of updates is bounded and leads to one call for each resource; the last update is never
// lost.
func TestUpdateStorm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		updates, hold := make(map[string]int), make(chan struct{})
		lists := 0
		v := &versioned{}
		s := v.dial(t, session.Config{
			OnResourceUpdated: func(uri string) {
				<-hold
				updates[uri]++
			},
			OnResourcesChanged: func() { lists++ },
		})
		update := func(uri string) {
			v.wire.receive(`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"` + uri + `"}}`)
		}
		update("first")
		synctest.Wait() // its call has begun
		for range 3 {
			for i := range 2000 {
				update(fmt.Sprintf("r:%d", i))
			}
			update("first")
			v.change()
		}
		update("u:" + strings.Repeat("x", 9<<10)) // too long to be a URI
		close(hold)
		synctest.Wait()
		if updates["first"] != 1 || updates["r:0"] != 1 || updates["r:1023"] != 1 || updates["r:1024"] != 0 || len(updates) != 1025 {
			t.Errorf("told of %d resources: first %d times, r:0 %d, r:1023 %d, r:1024 %d",
				len(updates), updates["first"], updates["r:0"], updates["r:1023"], updates["r:1024"])
		}
		if lists != 1 {
			t.Errorf("told %d times that the list changed", lists)
		}
		update("first")
		synctest.Wait()
		if updates["first"] != 2 {
			t.Error("the last update is lost")
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		<-s.Released()
	})
}

// A list of a server of the legacy era is kept until the server announces a change, but over HTTP, where it may have no stream to do so on, for a
// minute at most.
func TestAListIsKeptForAMinuteOverHTTP(t *testing.T) {
	for name, c := range map[string]struct {
		over func(*wire) transports.Transport
		want int
	}{"over HTTP": {overHTTP, 2}, "elsewhere": {elsewhere, 1}} {
		synctest.Test(t, func(t *testing.T) {
			w, asked := &wire{}, 0
			w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
				switch m.Method {
				case "initialize":
					w.receive(fmt.Sprintf(`{"id":%d,"result":{"protocolVersion":"2025-11-25","capabilities":{"resources":{"listChanged":true}},`+
						`"serverInfo":{"name":"s","version":"1"}}}`, m.ID))
				case "resources/list":
					asked++
					w.receive(fmt.Sprintf(`{"id":%d,"result":{"resources":[{"uri":"x:1","name":"one"}]}}`, m.ID))
				}
				return transports.Written, nil
			}
			s, err := session.Dial(t.Context(), c.over(w), session.Config{Era: messages.EraLegacy})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Handshake(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, pause := range []time.Duration{0, 59 * time.Second, 2 * time.Second} {
				time.Sleep(pause)
				if list, err := s.Resources(t.Context()); err != nil || len(list.Items) != 1 {
					t.Errorf("%s: %v, %v", name, list, err)
				}
			}
			if asked != c.want {
				t.Errorf("%s: the list was asked for %d times, want %d", name, asked, c.want)
			}
			_ = s.Close(t.Context())
			<-s.Released()
		})
	}
}
