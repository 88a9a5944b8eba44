package servers_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/servers"
)

func noise(t *testing.T) {
	f := start(t, "noise", "lines=2")
	for range 2 {
		if l := f.line(); json.Valid([]byte(l)) {
			t.Errorf("%s is no noise", l)
		}
	}
	f.request(1, "ping", "{}")
	if l := f.line(); !strings.HasPrefix(l, "[info]") {
		t.Errorf("first line %s, want a log line", l)
	}
	f.answerTo(1)
	f.initialize()
}

func flood(t *testing.T) {
	f := start(t, "flood")
	f.initialize()
	f.list(2, "{}")
	for range 10_000 {
		if l := f.line(); !strings.HasPrefix(l, "[debug]") {
			t.Fatalf("line %s", l)
		}
	}
}

func hugeLine(t *testing.T) {
	f := start(t, "huge-line", "size=3000000")
	f.initialize()
	if n := len(f.text(2, "huge", "{}")); n != 3_000_000 {
		t.Errorf("%d bytes", n)
	}
	f.text(3, "echo", `{"text":"x"}`)
}

func endlessLine(t *testing.T) {
	f := start(t, "endless-line")
	f.initialize()
	f.list(2, "{}")
	f.quiet()
	f.lives()
}

func halfLine(t *testing.T) {
	f := start(t, "half-line")
	f.initialize()
	f.request(2, "tools/call", `{"name":"echo","arguments":{"text":"x"}}`)
	if l := f.line(); json.Valid([]byte(l)) || !strings.Contains(l, `"id":2`) {
		t.Errorf("got %s", l)
	}
	f.exits(1)
}

func stderrFlood(t *testing.T) {
	f := start(t, "stderr-flood", "size=300000")
	f.initialize()
	// It has written everything by now; the last of it may still be in the pipe.
	for end := time.Now().Add(bound); len(f.err.String()) < 300_000; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d bytes on standard error", len(f.err.String()))
		}
	}
}

func oddLines(t *testing.T) {
	f := start(t, "odd-lines")
	f.initialize()
	f.request(2, "tools/call", `{"name":"echo","arguments":{"text":"x"}}`)
	var seen []string
	for range 6 {
		seen = append(seen, f.line())
	}
	if seen[1] != "" || !strings.HasSuffix(seen[3], "\r") || !strings.HasPrefix(seen[4], "[{") ||
		!strings.Contains(seen[5], `"id":2`) {
		t.Errorf("lines %q", seen)
	}
}

func hostileText(t *testing.T) {
	f := start(t, "hostile-text")
	a := f.initialize()
	tools, _ := f.list(2, "{}")
	var d struct{ Description string }
	for _, raw := range tools {
		if err := json.Unmarshal(raw, &d); err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(d.Description, "d") {
			break
		}
	}
	var hello struct{ ServerInfo struct{ Name string } }
	if err := json.Unmarshal(a.Result, &hello); err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{
		"name":           hello.ServerInfo.Name,
		"description":    d.Description,
		"result":         f.text(3, "hostile", "{}"),
		"standard error": f.err.String(),
	} {
		if !strings.Contains(text, "\x1b[2J") || !strings.Contains(text, "\u202e") {
			t.Errorf("the %s %q is harmless", where, text)
		}
	}
}

func silent(t *testing.T) {
	f := start(t, "silent")
	f.request(1, "initialize", "{}")
	f.quiet()
	f.in.Close()
	f.exits(0)
}

func wrongVersion(t *testing.T) {
	if a := start(t, "wrong-version").initialize(); !strings.Contains(string(a.Result), `"1999-01-01"`) {
		t.Errorf("got %s", a.Result)
	}
}

func refusesInitialize(t *testing.T) {
	if a := start(t, "refuses-initialize", "code=-32000").initialize(); !strings.Contains(string(a.Error), "-32000") {
		t.Errorf("got %s %s", a.Result, a.Error)
	}
}

func hangsOnCall(t *testing.T) {
	f := start(t, "hangs-on-call")
	f.initialize()
	f.list(2, "{}")
	f.request(3, "tools/call", `{"name":"echo","arguments":{"text":"x"}}`)
	f.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	f.quiet()
	f.request(4, "ping", "{}")
	f.answerTo(4)
}

func lateAnswers(t *testing.T) {
	f := start(t, "late-answers", "after=300ms")
	f.initialize()
	f.request(3, "tools/call", `{"name":"echo","arguments":{"text":"x"}}`)
	f.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
	f.answerTo(3)
}

func oddAnswers(t *testing.T) {
	f := start(t, "odd-answers")
	f.initialize()
	f.request(3, "tools/call", `{"name":"echo","arguments":{"text":"x"}}`)
	var ids []string
	for range 5 {
		var a answer
		if err := json.Unmarshal([]byte(f.line()), &a); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, string(a.ID))
	}
	if want := []string{"987654321", `"nobody"`, "null", "3", "3"}; !slices.Equal(ids, want) {
		t.Errorf("ids %v, want %v", ids, want)
	}
}

func progressForever(t *testing.T) {
	f := start(t, "progress-forever", "every=5ms")
	f.initialize()
	f.request(3, "tools/call", `{"name":"echo","arguments":{},"_meta":{"progressToken":"tok"}}`)
	for i := range 5 {
		if l := f.line(); !strings.Contains(l, fmt.Sprintf(`"progressToken":"tok","progress":%d`, i+1)) {
			t.Fatalf("got %s", l)
		}
	}
}

func badResults(t *testing.T) {
	f := start(t, "bad-results")
	f.initialize()
	for i, c := range []struct{ tool, want string }{
		{"null", `null`}, {"text", `"just text"`}, {"empty", `{}`}, {"unknown-content", `hologram`},
		{"not-as-declared", `"sum":"not`}, {"big-number", `9007199254740993`},
	} {
		if l := string(f.call(10+i, c.tool, "{}").Result); !strings.Contains(l, c.want) {
			t.Errorf("%s gave %s", c.tool, l)
		}
	}
	if got := f.text(20, "echo", `{"text":"x"}`); got != "x" {
		t.Errorf("echo answers %q", got)
	}
}

func noList(t *testing.T) {
	f := start(t, "no-list")
	f.initialize()
	f.request(2, "tools/list", "{}")
	f.quiet()
	f.request(3, "ping", "{}")
	f.answerTo(3)
}

func refusesList(t *testing.T) {
	f := start(t, "refuses-list", "good=1")
	f.initialize()
	f.list(2, "{}")
	f.request(3, "tools/list", "{}")
	if a := f.answerTo(3); a.Error == nil {
		t.Errorf("got %s", a.Result)
	}
}

func badSchemas(t *testing.T) {
	f := start(t, "bad-schemas")
	f.initialize()
	tools, _ := f.list(2, "{}")
	got := names(tools)
	bad := []string{"schema-is-text", "unreadable", ""}
	for _, want := range slices.Concat(servers.GoodTools(), servers.UsableTools(), bad) {
		if !slices.Contains(got, want) {
			t.Errorf("%q is not in %v", want, got)
		}
	}
	if i := slices.Index(got, "big-number"); string(tools[i]) != servers.Definition("big-number") {
		t.Errorf("big-number is %s", tools[i])
	}
}

func notAList(t *testing.T) {
	f := start(t, "not-a-list")
	f.initialize()
	f.request(2, "tools/list", "{}")
	if a := f.answerTo(2); !strings.Contains(string(a.Result), `"tools":{`) {
		t.Errorf("got %s", a.Result)
	}
}

func duplicates(t *testing.T) {
	f := start(t, "duplicates")
	f.initialize()
	tools, _ := f.list(2, "{}")
	count := map[string]int{}
	for _, n := range names(tools) {
		count[n]++
	}
	if count["twice"] != 2 || count["again"] != 2 || count["echo"] != 1 {
		t.Errorf("counts %v", count)
	}
}

func longNames(t *testing.T) {
	f := start(t, "long-names")
	f.initialize()
	tools, _ := f.list(2, "{}")
	n := names(tools)
	i := slices.IndexFunc(n, func(s string) bool { return len(s) > 64 })
	if i < 0 || !slices.Contains(n, "with space") {
		t.Fatalf("names %v", n)
	}
	if got := f.text(3, n[i], "{}"); got != n[i] {
		t.Errorf("%s answers %s", n[i], got)
	}
}

func cursorLoop(t *testing.T) {
	f := start(t, "cursor-loop")
	_, first := f.list(2, "{}")
	_, second := f.list(3, fmt.Sprintf(`{"cursor":%q}`, *first))
	if *first != *second {
		t.Errorf("cursors %s and %s", *first, *second)
	}
}

func endlessPages(t *testing.T) {
	f := start(t, "endless-pages")
	seen := map[string]bool{}
	for i := range 20 {
		_, next := f.list(2+i, "{}")
		if next == nil || seen[*next] {
			t.Fatalf("page %d has the cursor %v", i, next)
		}
		seen[*next] = true
	}
}

func emptyCursor(t *testing.T) {
	f := start(t, "empty-cursor")
	_, next := f.list(2, "{}")
	if next == nil || *next != "" {
		t.Fatalf("cursor %v", next)
	}
	if tools, next := f.list(3, `{"cursor":""}`); next != nil || names(tools)[0] != "on-the-second-page" {
		t.Errorf("second page %v, cursor %v", names(tools), next)
	}
}

func listStorm(t *testing.T) {
	f := start(t, "list-storm", "count=50", "every=100us")
	f.initialize()
	f.list(2, "{}")
	for range 50 {
		if l := f.line(); !strings.Contains(l, "list_changed") {
			t.Fatalf("got %s", l)
		}
	}
	f.quiet()
	tools, _ := f.list(3, "{}")
	if !slices.Contains(names(tools), "after-the-storm") {
		t.Errorf("tools %v", names(tools))
	}
}

func listFeedback(t *testing.T) {
	f := start(t, "list-feedback")
	for i := range 3 {
		f.list(2+i, "{}")
		if l := f.line(); !strings.Contains(l, "list_changed") {
			t.Errorf("got %s", l)
		}
	}
}

func changesWhileListing(t *testing.T) {
	f := start(t, "changes-while-listing", "times=1")
	f.request(2, "tools/list", "{}")
	if l := f.line(); !strings.Contains(l, "list_changed") {
		t.Errorf("first %s", l)
	}
	if a := f.answerTo(2); strings.Contains(string(a.Result), "changed-1") {
		t.Error("the answer holds what was added after it")
	}
	tools, _ := f.list(3, "{}")
	if !slices.Contains(names(tools), "changed-1") {
		t.Errorf("tools %v", names(tools))
	}
	select {
	case l := <-f.out:
		t.Errorf("got %s", l)
	case <-time.After(soon):
	}
}
