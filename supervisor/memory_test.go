package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// heavy is a fake whose list of tools has so many bytes and some more.
func heavy(size int) *fake {
	f := newFake("small", "a", "b", "c", "d")
	f.words = map[string]string{}
	for _, tool := range f.tools[1:] {
		f.words[tool] = strings.Repeat("x", size/4)
	}
	return f
}

// TestTheGreediestServerIsRefused: of three servers with large lists two connect and the greediest does not; the small one works,
// whenever it comes. When another one is removed, the refused one is connected.
func TestTheGreediestServerIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fakes := map[string]*fake{"greedy": heavy(3 << 20), "large": heavy(700 << 10), "middle": heavy(600 << 10), "small": newFake("echo")}
		cfg := supervisor.Config{MemoryBudget: 4 << 20, Servers: map[string]supervisor.Spec{}}
		for name := range fakes {
			if name != "small" {
				cfg.Servers[name] = supervisor.Spec{Type: messages.SDK}
			}
		}
		m := start(t, cfg, fakes)
		settled(t, m)
		for name, want := range map[string]messages.Phase{"greedy": messages.Failed, "large": messages.Connected, "middle": messages.Connected} {
			st, err := m.ServerStatus(name)
			if err != nil || st.Status != want {
				t.Errorf("%s is %s (%s), want %s; %v", name, st.Status, st.Error, want, err)
			}
			if name == "greedy" && (st.Class != messages.ClassExhausted || st.Retry == messages.RetryNever ||
				!strings.Contains(st.Error, `"greedy" asked for 3.0 MiB and holds 0 KiB`) || !strings.Contains(st.Error, "raise the memory budget")) {
				t.Errorf("%s %s: %s", st.Class, st.Retry, st.Error)
			}
		}
		if err := m.Connect(t.Context(), "small", supervisor.Spec{Type: messages.SDK}); err != nil {
			t.Fatal(err)
		}
		if _, err := m.CallServerTool(t.Context(), "small", "echo", json.RawMessage(`{}`)); err != nil {
			t.Error(err)
		}
		fakes["greedy"].set(func(f *fake) { f.words["a"], f.words["b"], f.words["c"] = "", "", "" })
		if err := m.Reconnect(t.Context(), "greedy"); err != nil {
			t.Error(err)
		}
		if st, _ := m.ServerStatus("greedy"); st.Memory != 0 || m.Held() < 2<<20 {
			t.Errorf("%d bytes are said to be held by a server with less than 1 MiB; %d by all", st.Memory, m.Held())
		}
		if err := m.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if m.Held() != 0 {
			t.Errorf("%d bytes are held after Close", m.Held())
		}
	})
}

// TestAListThatGrowsTooMuch: a connected server whose list grows beyond its share goes on with the list that it had, and takes
// the next one that fits.
func TestAListThatGrowsTooMuch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := heavy(400 << 10)
		m := start(t, supervisor.Config{MemoryBudget: 2 << 20, Servers: map[string]supervisor.Spec{"f": {Type: messages.SDK}}},
			map[string]*fake{"f": f})
		settled(t, m)
		before := m.Held()
		change := func(size int) {
			g := heavy(size)
			f.set(func(f *fake) { f.words = g.words })
			f.setTools(g.tools...)
			time.Sleep(5 * time.Second)
		}
		change(8 << 20)
		if st, _ := m.ServerStatus("f"); st.Status != messages.Connected || len(st.Tools) != 5 || m.Held() != before {
			t.Errorf("%s with %d tools, %d bytes instead of %d", st.Status, len(st.Tools), m.Held(), before)
		}
		change(200 << 10)
		time.Sleep(5 * time.Minute)
		if held := m.Held(); held >= before || held < 200<<10 {
			t.Errorf("%d bytes are held for the shorter list, %d were for the longer one", held, before)
		}
	})
}

// TestMemoryComesBack: whatever servers do, what is held is what their lists cost, at most the budget, and nothing at the end.
func TestMemoryComesBack(t *testing.T) {
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 5))
			fakes := map[string]*fake{}
			for i := range 5 {
				fakes[fmt.Sprint("s", i)] = heavy(r.IntN(200 << 10))
			}
			m := start(t, supervisor.Config{MemoryBudget: 400 << 10}, fakes)
			for range 60 {
				name := fmt.Sprint("s", r.IntN(5))
				f := fakes[name]
				var err error
				switch r.IntN(6) {
				case 0, 1:
					err = m.Connect(t.Context(), name, supervisor.Spec{Type: messages.SDK})
				case 2:
					err = m.Disconnect(t.Context(), name)
				case 3:
					f.kill()
				case 4:
					g := heavy(r.IntN(200 << 10))
					f.set(func(f *fake) { f.words = g.words })
					f.setTools(g.tools...)
				case 5:
					if f.dials.Load() == 0 {
						continue // no handler would get it
					}
					f.say("notifications/message", `{"level":"info","data":"`+strings.Repeat("x", 10_000)+`"}`)
				}
				var own *supervisor.Error
				if err != nil && !errors.As(err, &own) {
					t.Fatal(err)
				}
				time.Sleep(time.Duration(r.IntN(3000)) * time.Millisecond)
				if held := m.Held(); held < 0 || held > 600<<10 { // servers that are added get their fair share all the same
					t.Fatalf("%d bytes are held", held)
				}
			}
			for _, name := range m.Servers() {
				if err := m.Disconnect(t.Context(), name); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Minute)
			if m.Held() != 0 && len(m.Servers()) == 0 {
				t.Fatalf("%d bytes are held without a server", m.Held())
			}
			if err := m.Close(context.Background()); err != nil {
				t.Error(err)
			}
			if m.Held() != 0 {
				t.Fatalf("%d bytes are held after Close", m.Held())
			}
		})
	}
}
