package supervisor_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/pins"
)

// TestARugPullIsHeldBack: a tool whose description changes is withdrawn with its reason until the new definition is
// approved; a new tool is not a changed one; with warn it stays.
func TestARugPullIsHeldBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "pins.json")
		store, err := pins.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		f, g := newFake("echo", "add"), newFake("echo")
		m := start(t, supervisor.Config{Pins: store, Pin: messages.PinHold, Servers: map[string]supervisor.Spec{
			"a": {Type: messages.SDK}, "warned": {Type: messages.SDK, Pin: messages.PinWarn}}}, map[string]*fake{"a": f, "warned": g})
		settled(t, m)
		say := func(word string) {
			for _, f := range []*fake{f, g} {
				f.set(func(f *fake) { f.words = map[string]string{"echo": word} })
			}
			f.setTools("echo", "add", "new")
			g.setTools("echo")
			time.Sleep(5 * time.Second)
			synctest.Wait()
		}
		offered := func(want string) {
			t.Helper()
			if got := strings.Join(names(m), " "); got != want {
				t.Errorf("offered: %s", got)
			}
		}
		say("evil")
		offered("mcp__a__add mcp__a__new mcp__warned__echo")
		_, err = m.CallServerTool(t.Context(), "a", "echo", nil)
		if !errors.Is(err, supervisor.ErrDenied) || !errors.Is(err, supervisor.ErrNotSent) || !strings.Contains(err.Error(),
			"held back: its description changed since it was approved; see: mcpvisor diff a, then: mcpvisor approve a") {
			t.Errorf("%v", err)
		}
		seen := m.PinChanges("a")
		if len(seen) != 1 || seen[0].New.Description != "evil" {
			t.Fatalf("%+v", seen)
		}
		say("more evil") // between the look and the approval
		if unseen, err := m.ApprovePins(t.Context(), "a", seen); err != nil || len(unseen) != 1 {
			t.Errorf("%v, %v", unseen, err)
		}
		offered("mcp__a__add mcp__a__new mcp__warned__echo")
		if unseen, err := m.ApprovePins(t.Context(), "a", m.PinChanges("a")); err != nil || len(unseen) != 0 {
			t.Errorf("%v, %v", unseen, err)
		}
		offered("mcp__a__add mcp__a__echo mcp__a__new mcp__warned__echo")
		if _, err := m.CallServerTool(t.Context(), "a", "echo", nil); err != nil {
			t.Error(err)
		}
		say("evil") // it was never approved
		offered("mcp__a__add mcp__a__new mcp__warned__echo")
	})
}

// A tool that the person allows later is remembered as it is then, although the server's list is the same, and is held back when it changes.
func TestAToolThatIsAllowedLaterIsPinned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := pins.Open(filepath.Join(t.TempDir(), "pins.json"))
		if err != nil {
			t.Fatal(err)
		}
		f := newFake("echo", "add")
		spec := supervisor.Spec{Type: messages.SDK, AllowedTools: []string{"echo"}}
		m := start(t, supervisor.Config{Pins: store, Pin: messages.PinHold, Servers: map[string]supervisor.Spec{"a": spec}}, map[string]*fake{"a": f})
		settled(t, m)
		spec.AllowedTools = []string{"echo", "add"}
		if _, err := m.SetServers(t.Context(), map[string]supervisor.Spec{"a": spec}); err != nil {
			t.Fatal(err)
		}
		offered := func(when, want string) {
			t.Helper()
			time.Sleep(5 * time.Second)
			synctest.Wait()
			if got := strings.Join(names(m), " "); got != want {
				t.Errorf("%s are offered: %s", when, got)
			}
		}
		offered("when both are allowed", "mcp__a__add mcp__a__echo")
		f.set(func(f *fake) { f.words = map[string]string{"add": "evil"} })
		f.setTools("echo", "add")
		offered("after the change", "mcp__a__echo")
	})
}

// TestAChangeIsToldOnce: watchers get one event for each change, the status names the tools for as long as they wait, whatever is
// done about them, and nothing is told again at the next list. What goes back to what was approved is told as well.
func TestAChangeIsToldOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := pins.Open("")
		if err != nil {
			t.Fatal(err)
		}
		f := newFake("echo", "add")
		m := start(t, supervisor.Config{Pins: store, Servers: map[string]supervisor.Spec{"a": {Type: messages.SDK}}},
			map[string]*fake{"a": f})
		settled(t, m)
		w := m.Watch(1000)
		defer w.Close()
		var received []messages.Event
		go func() {
			for e := range w.Events(t.Context()) {
				if e.Kind == messages.EventPins {
					received = append(received, e)
				}
			}
		}()
		say := func(word string, tools ...string) {
			f.set(func(f *fake) { f.words = map[string]string{"echo": word} })
			f.setTools(tools...)
			time.Sleep(5 * time.Second)
			synctest.Wait()
		}
		say("evil", "echo", "add")
		say("evil", "echo", "add", "more")
		if err := m.SetPermissions(t.Context(), ownRules(t, "deny a:nothing")); err != nil { // every tool is shown anew
			t.Fatal(err)
		}
		synctest.Wait()
		if len(received) != 1 || received[0].Server != "a" || len(received[0].Changed) != 1 || received[0].Changed[0].Name != "echo" ||
			strings.Join(received[0].Changed[0].Parts, " ") != "description" || received[0].Changed[0].Held {
			t.Fatalf("%+v", received)
		}
		if p := received[0].ToProto(); len(p.GetChanged()) != 1 || p.GetChanged()[0].GetName() != "echo" {
			t.Errorf("by message: %v", p)
		}
		if st, _ := m.ServerStatus("a"); len(st.ChangedTools) != 1 || st.ChangedTools[0].Name != "echo" || len(st.Tools) != 3 {
			t.Errorf("%+v", st)
		}
		if _, err := m.CallServerTool(t.Context(), "a", "echo", nil); err != nil {
			t.Error(err)
		}
		say("", "echo", "add", "more")
		if st, _ := m.ServerStatus("a"); len(received) != 2 || len(received[1].Changed) != 0 || len(st.ChangedTools) != 0 {
			t.Errorf("%+v, %+v", received, st.ChangedTools)
		}
		say("worse", "echo", "add", "more")
		if len(received) != 3 {
			t.Errorf("another change: %+v", received)
		}
	})
}

// TestACallOutlivesTheHoldOfItsTool: the list changes in the middle of a call. The call ends as the server says, the next one is
// not sent, and with the approval the tool is callable at once. What the organisation asks for no entry weakens.
func TestACallOutlivesTheHoldOfItsTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := pins.Open("")
		if err != nil {
			t.Fatal(err)
		}
		f := newFake("echo")
		release := make(chan struct{})
		f.onCall = func(context.Context, string, json.RawMessage) (string, error) { <-release; return "done", nil }
		m := start(t, supervisor.Config{Pins: store, Pin: messages.PinOff, LeastPin: messages.PinHold,
			Servers: map[string]supervisor.Spec{"a": {Type: messages.SDK, Pin: messages.PinOff}}}, map[string]*fake{"a": f})
		settled(t, m)
		ended := make(chan error, 1)
		go func() {
			_, err := m.CallServerTool(t.Context(), "a", "echo", nil)
			ended <- err
		}()
		synctest.Wait()
		f.set(func(f *fake) { f.words = map[string]string{"echo": "evil"} })
		f.setTools("echo")
		time.Sleep(5 * time.Second)
		synctest.Wait()
		sent := f.calls.Load()
		if _, err := m.CallServerTool(t.Context(), "a", "echo", nil); !errors.Is(err, supervisor.ErrNotSent) ||
			!errors.Is(err, supervisor.ErrDenied) || !strings.Contains(err.Error(), "mcpvisor approve a") || f.calls.Load() != sent {
			t.Errorf("a held tool: %v", err)
		}
		close(release)
		if err := <-ended; err != nil {
			t.Errorf("the call in flight: %v", err)
		}
		if _, err := m.ApprovePins(t.Context(), "a", m.PinChanges("a")); err != nil {
			t.Fatal(err)
		}
		if _, err := m.CallServerTool(t.Context(), "a", "echo", nil); err != nil {
			t.Errorf("approved: %v", err)
		}
	})
}

// TestWithoutPinsNothingIsLetThrough: with hold, and a store that cannot be read, the manager cannot know what has changed. No tool is
// offered, the refusal says why, and when the store can be read all are.
func TestWithoutPinsNothingIsLetThrough(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pins.json")
	if err := os.WriteFile(path, []byte(`{"version": 99}`), 0o600); err != nil {
		t.Fatal(err)
	}
	store, err := pins.Open(path)
	if err == nil {
		t.Fatal("it was read")
	}
	t.Cleanup(func() { _ = store.Flush() }) // what is written in the background needs its folder
	m := start(t, supervisor.Config{Pins: store, Pin: messages.PinHold, Servers: map[string]supervisor.Spec{
		"a": {Type: messages.SDK}, "warned": {Type: messages.SDK, Pin: messages.PinWarn}}},
		map[string]*fake{"a": newFake("echo"), "warned": newFake("echo")})
	settled(t, m)
	if got := strings.Join(names(m), " "); got != "mcp__warned__echo" {
		t.Errorf("offered: %s", got)
	}
	if _, err := m.CallServerTool(t.Context(), "a", "echo", nil); !errors.Is(err, supervisor.ErrDenied) ||
		!strings.Contains(err.Error(), "whether it has changed cannot be known: the pins of tools cannot be read: the store of pins was written by a newer mcpvisor (format 99") {
		t.Errorf("%v", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the tools are offered again", func() bool { return strings.Join(names(m), " ") == "mcp__a__echo mcp__warned__echo" })
}

// TestHoldWritesBeforeItAnswers: with hold, a tool is offered when what was seen of it is written, and not before: a command that
// ends a moment later calls nothing that the next one cannot compare.
func TestHoldWritesBeforeItAnswers(t *testing.T) {
	blocked := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(blocked, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(blocked, "pins.json"): "", filepath.Join(t.TempDir(), "pins.json"): "mcp__a__echo",
	} {
		store, _ := pins.Open(path)
		t.Cleanup(func() { _ = store.Flush() })
		m := start(t, supervisor.Config{Pins: store, Pin: messages.PinHold, Servers: map[string]supervisor.Spec{
			"a": {Type: messages.SDK}}}, map[string]*fake{"a": newFake("echo")})
		settled(t, m)
		if got := strings.Join(names(m), " "); got != want {
			t.Errorf("%s: offered: %q", path, got)
		}
		if _, err := m.CallServerTool(t.Context(), "a", "echo", nil); (err == nil) != (want != "") {
			t.Errorf("%s: %v", path, err)
		}
		closeAll(t, m)
	}
}
