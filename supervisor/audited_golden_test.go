package supervisor_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
)

var update = flag.Bool("update", false, "write what the code answers into testdata")

// moody is a trail that refuses to write for a while.
type moody struct {
	trail
	refuses atomic.Bool
}

func (w *moody) Write(p []byte) (int, error) {
	if w.refuses.Load() {
		return 0, errors.New("no space left on device")
	}
	return w.trail.Write(p)
}

// TestAuditTranscript holds the lines of a record to testdata/audit.txt, which says what happens. Each kind must stand in it.
func TestAuditTranscript(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, f := &moody{}, newFake("get", "write", "drop")
		f.offers = `,"prompts":{}`
		f.onRead = func(_ context.Context, uri string) (string, error) {
			if uri == "x:///gone" {
				f.kill()
				return "", errors.New("gone")
			}
			return `{"contents":[{"uri":"x:///1","text":"one"}]}`, nil
		}
		m := start(t, supervisor.Config{Audit: w, AuditProject: "/work", ClientName: "agent", ClientVersion: "1.0",
			AuditOptions: audit.Options{Arguments: audit.Redacted, MaxRecords: 16},
			Access:       ownRules(t, "deny mcp__notes__drop | ask mcp__notes__write"),
			Ask: func(context.Context, supervisor.AskRequest) (supervisor.AskAnswer, error) {
				time.Sleep(1500 * time.Millisecond)
				return supervisor.AskOnce, nil
			}}, map[string]*fake{"notes": f})
		settled(t, m)
		written := func() { time.Sleep(10 * time.Second); synctest.Wait() }
		ctx := supervisor.WithCaller(t.Context(), "ann")
		args := map[string]any{"path": "a.md", "token": "hunter2hunter2", "to": "https://ann:pw@host.example/?k=v"}
		_, _ = m.CallTool(ctx, "mcp__notes__get", args)
		_, _ = m.CallTool(ctx, "mcp__notes__drop", args)
		_, _ = m.CallTool(ctx, "mcp__notes__write", args)
		_, _ = m.ReadResource(ctx, "x:///1")
		_, _ = m.ReadServerResource(ctx, "notes", "https://ann:pw@host.example/a?key=v")
		_, _ = m.ReadResource(ctx, "y:///nobodys")
		_, _ = m.GetPrompt(ctx, "mcp__notes__daily", map[string]string{"day": "monday", "password": "hunter2hunter2"})
		_, _ = m.ReadServerResource(ctx, "nobody", "x:///1")
		written()
		w.refuses.Store(true)
		for range 20 {
			_, _ = m.CallTool(ctx, "mcp__notes__get", nil)
		}
		written()
		w.refuses.Store(false)
		written()
		if err := m.Toggle(ctx, "notes", false); err != nil {
			t.Error(err)
		}
		if err := m.SetPermissions(ctx, access.Rules{}); err != nil {
			t.Error(err)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
		seen := map[audit.Kind]bool{}
		for _, r := range w.records(t) {
			seen[r.Kind] = true
		}
		for _, kind := range audit.Kinds {
			if !seen[kind] {
				t.Errorf("the transcript has no record of kind %s", kind)
			}
		}
		got := regexp.MustCompile(`"run":"[0-9a-f]+"`).ReplaceAllString(w.data.String(), `"run":"R"`)
		got = regexp.MustCompile(`"pid":\d+`).ReplaceAllString(got, `"pid":1`)
		compareTranscript(t, "testdata/audit.txt", changesFirst(got))
	})
}

// phaseBeforeChange is a phase that was recorded before the command of the same instant that caused it.
var phaseBeforeChange = regexp.MustCompile(`(\{"v":2,"time":"([^"]+)","kind":"phase".*)"seq":(\d+)\}\n(\{"v":2,"time":"([^"]+)","kind":"change".*)"seq":(\d+)\}\n`)

// changesFirst puts a command before the phase that it caused: the auditor hears of the phase from the server's actor and of the command from
// the caller, and chance decides which of them is first within one instant.
func changesFirst(text string) string {
	return phaseBeforeChange.ReplaceAllStringFunc(text, func(pair string) string {
		m := phaseBeforeChange.FindStringSubmatch(pair)
		if m[2] != m[5] {
			return pair
		}
		return m[4] + `"seq":` + m[3] + "}\n" + m[1] + `"seq":` + m[6] + "}\n"
	})
}

func TestChangesFirst(t *testing.T) {
	phase, change := `{"v":2,"time":"T","kind":"phase","was":"connected","seq":`, `{"v":2,"time":"T","kind":"change","change":"disable","seq":`
	want := change + "33}\n" + phase + "34}\n"
	for _, got := range []string{want, phase + "33}\n" + change + "34}\n"} {
		if got = changesFirst(got); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	if apart := phase + "33}\n" + strings.Replace(change, `"T"`, `"U"`, 1) + "34}\n"; changesFirst(apart) != apart {
		t.Error("a command of another instant was moved")
	}
}

// compareTranscript compares with what stands below the head of a file, whose lines begin with #.
func compareTranscript(t *testing.T, path, got string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, want, _ := strings.Cut(strings.ReplaceAll(string(raw), "\r\n", "\n"), "\n\n")
	if *update {
		if err := os.WriteFile(path, []byte(head+"\n\n"+got), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if got != want {
		t.Errorf("%s says otherwise (-update writes it):\n%s", path, got)
	}
}
