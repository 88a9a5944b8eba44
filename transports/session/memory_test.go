package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/budget"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// lister is a server of this program whose lists have a settable number of entries of 10 KiB.
type lister struct {
	tools, resources atomic.Int64
	prefix           atomic.Pointer[string] // of the descriptions: another one is another list
	say              chan string            // what it says unasked
}

func (l *lister) serve(ctx context.Context, peer inprocess.Peer) error {
	go func() {
		for {
			select {
			case text := <-l.say:
				_ = peer.Write(ctx, []byte(text))
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		body, err := peer.Read(ctx)
		if err != nil {
			return nil //nolint:nilerr // the connection has ended
		}
		var r struct {
			ID     json.RawMessage
			Method string
			Params struct{ Cursor string }
		}
		if json.Unmarshal(body, &r) != nil || len(r.ID) == 0 {
			continue
		}
		result := `{}`
		switch r.Method {
		case "initialize":
			result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"resources":{"listChanged":true},"logging":{}},` +
				`"serverInfo":{"name":"l","version":"1"}}`
		case "tools/list":
			result = `{"tools":[` + l.entries(r.Params.Cursor, l.tools.Load(), `{"name":"t%d","inputSchema":{"type":"object"},"description":%q}`)
		case "resources/list":
			result = `{"resources":[` + l.entries(r.Params.Cursor, l.resources.Load(), `{"uri":"r:%d","name":"r","description":%q}`)
		}
		if err := peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, result)); err != nil {
			return err
		}
	}
}

// entries returns a page of up to 40 entries, with the end of its result.
func (l *lister) entries(cursor string, n int64, format string) string {
	prefix := ""
	if p := l.prefix.Load(); p != nil {
		prefix = *p
	}
	first, _ := strconv.ParseInt(cursor, 10, 64) // of the first page: 0
	var page []string
	for i := first; i < min(n, first+40); i++ {
		page = append(page, fmt.Sprintf(format, i, prefix+strings.Repeat("x", 10<<10)))
	}
	if first+40 < n {
		return strings.Join(page, ",") + fmt.Sprintf(`],"nextCursor":"%d"}`, first+40)
	}
	return strings.Join(page, ",") + `]}`
}

func (l *lister) dial(t *testing.T, cfg session.Config) *session.Session {
	t.Helper()
	cfg.Era = messages.EraLegacy
	s, err := session.Dial(t.Context(), inprocess.New(l.serve), cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Handshake(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

func end(t *testing.T, s *session.Session) {
	t.Helper()
	if err := s.Close(t.Context()); err != nil {
		t.Error(err)
	}
	<-s.Released()
}

// refused checks that a list was refused because the share had no room.
func refused(t *testing.T, err error) {
	t.Helper()
	var exceeded *budget.ExceededError
	if !errors.Is(err, messages.ErrMemory) || !errors.As(err, &exceeded) || exceeded.Server != "l" ||
		messages.ClassOf(err) != messages.ClassExhausted || !strings.Contains(err.Error(), "raise the memory budget") {
		t.Errorf("%v", err)
	}
}

// TestListsAreHeld: the list of tools stays counted over several connections, and the same list again costs nothing
// more; the other lists are released with their session. A list beyond the share is refused, and its reserved memory
// is given back.
func TestListsAreHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(2 << 20)
		share := b.Open("l")
		l := &lister{say: make(chan string)}
		l.tools.Store(50)
		s := l.dial(t, session.Config{Share: share})
		list, err := s.ListTools(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		tools := share.Held()
		if tools != list.Size() || tools < 50*10<<10 || tools > 50*11<<10 {
			t.Errorf("%d bytes are held for 50 tools of 10 KiB, the list says %d", tools, list.Size())
		}
		for range 5 {
			if _, err := s.ListTools(t.Context()); err != nil || share.Held() != tools {
				t.Fatalf("the same list again: %d bytes, %v", share.Held(), err)
			}
		}
		l.tools.Store(1000)
		if _, err := s.ListTools(t.Context()); err == nil || share.Held() != tools {
			t.Errorf("a list of 10 MiB: %d bytes, %v", share.Held(), err)
		} else {
			refused(t, err)
		}
		l.resources.Store(20)
		if _, err := s.Resources(t.Context()); err != nil || share.Held() < tools+20*10<<10 {
			t.Errorf("%d bytes are held with resources, %v", share.Held(), err)
		}
		l.say <- `{"jsonrpc":"2.0","method":"notifications/resources/list_changed"}`
		synctest.Wait()
		if share.Held() != tools {
			t.Errorf("%d bytes are held when the resources have changed", share.Held())
		}
		l.resources.Store(1000)
		if _, err := s.Resources(t.Context()); err == nil || share.Held() != tools {
			t.Errorf("resources of 10 MiB: %d bytes, %v", share.Held(), err)
		} else {
			refused(t, err)
		}
		l.resources.Store(20)
		if _, err := s.Resources(t.Context()); err != nil {
			t.Error(err)
		}
		end(t, s)
		if share.Held() != tools {
			t.Errorf("%d bytes are held after the session, want the tools, %d", share.Held(), tools)
		}
		l.tools.Store(30)
		s = l.dial(t, session.Config{Share: share, Listed: &list})
		if list, err = s.ListTools(t.Context()); err != nil || share.Held() != list.Size() || share.Held() > 30*11<<10 {
			t.Errorf("%d bytes are held for 30 tools, %v", share.Held(), err)
		}
		other := "other "
		l.prefix.Store(&other)
		if list, err = s.ListTools(t.Context()); err != nil || share.Held() != list.Size() {
			t.Errorf("%d bytes are held for another list of %d, %v", share.Held(), list.Size(), err)
		}
		end(t, s)
		share.Close()
		if b.Total() != 0 {
			t.Errorf("%d bytes are left", b.Total())
		}
	})
}

// TestLogsThatWaitAreHeld: log messages that wait for their callback are counted, and dropped if the share has no
// room.
func TestLogsThatWaitAreHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		share := budget.New(100 << 10).Open("l")
		l := &lister{say: make(chan string)}
		gate := make(chan struct{})
		s := l.dial(t, session.Config{Share: share, OnLog: func(string, string, json.RawMessage) { <-gate }})
		for range 30 {
			l.say <- `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"` + strings.Repeat("x", 10<<10) + `"}}`
		}
		synctest.Wait()
		dropped := s.Stats().DroppedLogs
		if held := share.Held(); held < 30<<10 || held > 100<<10 || dropped < 20 {
			t.Errorf("%d bytes are held, %d messages dropped", held, dropped)
		}
		close(gate)
		synctest.Wait()
		if share.Held() != 0 {
			t.Errorf("%d bytes are held when all were told", share.Held())
		}
		end(t, s)
	})
}

// TestUnaskedWorkIsCharged: notifications, requests, late answers and logs lead to a pause of the server; answers to
// calls do not. Virtual time passes only in sleeps, so the charge is the price alone.
func TestUnaskedWorkIsCharged(t *testing.T) {
	for what, text := range map[string]string{
		"notification": `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}`,
		"log":          `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`,
		"request":      `{"jsonrpc":"2.0","id":"q","method":"ping"}`,
		"answer":       `{"jsonrpc":"2.0","id":12345,"result":{}}`,
	} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				share := budget.New(0).Open("l")
				l := &lister{say: make(chan string)}
				s := l.dial(t, session.Config{Share: share})
				for range 40_000 {
					if err := s.Ping(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if d := share.Pause(time.Now()); d != 0 {
					t.Fatalf("answers are charged: a pause of %v", d)
				}
				n := 0
				for ; share.Pause(time.Now()) == 0 && n < 100_000; n++ {
					l.say <- text
					synctest.Wait()
				}
				if n < 4_000 || n > 25_000 {
					t.Errorf("paused after %d", n)
				}
				end(t, s)
			})
		})
	}
}
