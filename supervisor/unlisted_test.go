package supervisor_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// A server that cannot list its tools is there for what else it has, says what is missing, and is asked again, ever more
// seldom.
func TestAServerWithoutItsToolListServesTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("echo")
		f.unlist = true
		m := start(t, supervisor.Config{}, map[string]*fake{"a": f})
		settled(t, m)
		st, _ := m.ServerStatus("a")
		if st.Status != messages.Connected || !strings.Contains(st.ToolsError, "no list today") || !strings.Contains(st.Reason, "no list today") {
			t.Fatalf("%s, %q, %q", st.Status, st.ToolsError, st.Reason)
		}
		if _, err := m.ReadServerResource(t.Context(), "a", "x:///1"); err != nil {
			t.Error(err)
		}
		if all, err := m.Resources(t.Context(), "a"); err != nil || len(all) != 1 {
			t.Errorf("%v, %v", all, err)
		}
		entries, _ := m.History("a")
		if !slices.ContainsFunc(entries, func(e supervisor.HistoryEntry) bool {
			return strings.Contains(e.Text, "its tools cannot be listed") && strings.Contains(e.Text, "no list today")
		}) {
			t.Errorf("%+v", entries)
		}
		time.Sleep(time.Hour)
		if n := f.lists.Load(); n < 10 || n > 100 {
			t.Errorf("it was asked %d times in an hour", n)
		}
		f.set(func(f *fake) { f.unlist = false })
		time.Sleep(2 * time.Minute)
		if st, _ = m.ServerStatus("a"); st.ToolsError != "" || st.Reason != "" || len(st.Tools) != 1 {
			t.Errorf("healed: %q, %q, %d tools", st.ToolsError, st.Reason, len(st.Tools))
		}
		if _, err := m.CallServerTool(t.Context(), "a", "echo", nil); err != nil {
			t.Error(err)
		}

		// A list that was known stands, over a reconnect too.
		f.set(func(f *fake) { f.unlist = true })
		if err := m.Reconnect(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		if st, _ = m.ServerStatus("a"); st.ToolsError == "" || len(st.Tools) != 1 {
			t.Errorf("after a reconnect: %q, %d tools", st.ToolsError, len(st.Tools))
		}
		if _, err := m.CallServerTool(t.Context(), "a", "echo", nil); err != nil {
			t.Error(err)
		}
		if n := f.dials.Load(); n != 2 {
			t.Errorf("%d connections", n)
		}
	})
}

// A server that does not answer when its list is asked for once more is connected with the list of before, and its status says which question it has
// not answered, and in which time. It said only that a deadline had passed.
func TestASilentListIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("echo")
		m := start(t, supervisor.Config{}, map[string]*fake{"a": f})
		settled(t, m)
		f.set(func(f *fake) { f.mute = true })
		go func() { _ = m.Refresh(t.Context(), "a") }()
		time.Sleep(45 * time.Second)
		if st, err := m.ServerStatus("a"); err != nil || st.Status != messages.Connected || !strings.Contains(st.ToolsError, "no answer to tools/list within 30s") {
			t.Errorf("%s, %q, %v", st.Status, st.ToolsError, err)
		}
	})
}

// A connected server that leaves requests for its list unanswered is no server that is slow to connect: the next attempt waits for it as long as the
// first one did.
func TestSilentListsLengthenNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake("echo")
		m := start(t, supervisor.Config{}, map[string]*fake{"a": f})
		settled(t, m)
		f.set(func(f *fake) { f.mute = true })
		for range 3 {
			_ = m.Refresh(t.Context(), "a") // it ends when the list has had its time
		}
		if err := m.Reconnect(t.Context(), "a"); err == nil || !strings.Contains(err.Error(), "no answer to initialize within 30s") {
			t.Errorf("the attempt after that ended with %v", err)
		}
	})
}
