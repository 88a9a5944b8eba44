package servers_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/servers"
)

// does holds, for each kind, the check that it does what Kinds says. A kind without one fails.
var does = map[string]func(t *testing.T){
	"good":                  good,
	"asks":                  asks,
	"cheap":                 cheap,
	"offers":                offers,
	"exits-at-once":         exitsAtOnce,
	"crash-after":           crashAfter,
	"exits-after-list":      exitsAfterList,
	"dies-mid-call":         diesMidCall,
	"answers-and-dies":      answersAndDies,
	"dies-on-probe":         diesOnProbe,
	"slow-start":            slowStart,
	"ignores-signals":       ignoresSignals,
	"ignores-eof":           ignoresEOF,
	"grandchild":            grandchild,
	"own-session":           ownSession,
	"launcher":              launcher,
	"stops-reading":         stopsReading,
	"closes-stdout":         closesStdout,
	"noise":                 noise,
	"flood":                 flood,
	"huge-line":             hugeLine,
	"endless-line":          endlessLine,
	"half-line":             halfLine,
	"stderr-flood":          stderrFlood,
	"odd-lines":             oddLines,
	"hostile-text":          hostileText,
	"silent":                silent,
	"wrong-version":         wrongVersion,
	"refuses-initialize":    refusesInitialize,
	"hangs-on-call":         hangsOnCall,
	"late-answers":          lateAnswers,
	"odd-answers":           oddAnswers,
	"progress-forever":      progressForever,
	"bad-results":           badResults,
	"no-list":               noList,
	"refuses-list":          refusesList,
	"bad-schemas":           badSchemas,
	"not-a-list":            notAList,
	"duplicates":            duplicates,
	"long-names":            longNames,
	"cursor-loop":           cursorLoop,
	"endless-pages":         endlessPages,
	"empty-cursor":          emptyCursor,
	"list-storm":            listStorm,
	"list-feedback":         listFeedback,
	"changes-while-listing": changesWhileListing,
}

func TestEachKindDoesWhatItSays(t *testing.T) {
	known := map[string]bool{}
	for _, k := range servers.Kinds() {
		known[k.Name] = true
		check, ok := does[k.Name]
		if !ok {
			t.Errorf("%s (%s) has no check", k.Name, k.Does)
			continue
		}
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			check(t)
		})
	}
	for name := range does {
		if !known[name] {
			t.Errorf("a check for %s, which is no kind", name)
		}
	}
}

func offers(t *testing.T) {
	f := start(t, "offers", "change=1ms")
	if a := f.initialize(); !strings.Contains(string(a.Result), `"prompts":{}`) {
		t.Errorf("initialize gave %s", a.Result)
	}
	for id, c := range map[int][3]string{
		20: {"resources/list", `{}`, `"uri":"text://hello"`},
		21: {"resources/templates/list", `{}`, `item://{id}`},
		22: {"resources/read", `{"uri":"bin://picture"}`, `"blob":"iVBORw0KGgo="`},
		23: {"resources/read", `{"uri":"item://7"}`, `item 7`},
		24: {"prompts/list", `{}`, `"name":"greet"`},
		25: {"prompts/get", `{"name":"greet","arguments":{"name":"Ann"}}`, `Greet Ann.`},
		27: {"tools/call", `{"name":"attach","arguments":{"images":1}}`, `"data":"iVBORw0KGgo="`},
		26: {"completion/complete", `{"argument":{"name":"name","value":"B"}}`, `"values":["Bea"]`},
	} {
		f.request(id, c[0], c[1])
		if a := f.answerTo(id); !strings.Contains(string(a.Result), c[2]) {
			t.Errorf("%s gave %s", c[0], a.Result)
		}
	}
	f.request(30, "resources/read", `{"uri":"nothing://"}`)
	if a := f.answerTo(30); a.Error == nil {
		t.Errorf("a resource that is not there gave %s", a.Result)
	}
	for request, received := range map[string]string{
		`"resources/subscribe","params":{"uri":"text://state"}`:                                   "notifications/resources/updated",
		`"logging/setLevel","params":{"level":"emergency"}`:                                       "emergency",
		`"tools/call","params":{"name":"count","arguments":{"to":1},"_meta":{"progressToken":7}}`: `"progressToken":7`,
	} {
		f.send(`{"jsonrpc":"2.0","id":40,"method":` + request + `}`)
		first, second := f.line(), f.line()
		if !strings.Contains(first+second, received) {
			t.Errorf("%s brought %s and %s", request, first, second)
		}
	}
}

func TestAMisspeltFixtureIsAMistakeAndNoServer(t *testing.T) {
	start(t, "goood").exits(64)
	start(t, "good", "delay").exits(64)
	f := start(t, "good", "page=many")
	f.request(1, "tools/list", "{}") // a parameter is read when it is needed
	f.exits(64)
}

func good(t *testing.T) {
	f := start(t, "good", "tools=3", "page=7")
	if a := f.initialize(); !strings.Contains(string(a.Result), `"protocolVersion":"2025-06-18"`) {
		t.Errorf("initialize gave %s", a.Result)
	}
	var all []json.RawMessage
	for cursor, id := `{}`, 10; cursor != ""; id++ {
		page, next := f.list(id, cursor)
		if all = append(all, page...); next == nil {
			break
		}
		cursor = fmt.Sprintf(`{"cursor":%q}`, *next)
	}
	want := append(servers.GoodTools(), "extra-0000", "extra-0001", "extra-0002")
	if got := names(all); !slices.Equal(got, want) {
		t.Errorf("tools %v, want %v", got, want)
	}
	if got := string(all[1]); got != servers.Definition("add") {
		t.Errorf("definition of add is %s, want %s", got, servers.Definition("add"))
	}
	file := filepath.Join(t.TempDir(), "log")
	for i, c := range []struct{ tool, args, want string }{
		{"echo", `{"text":"hi ☃"}`, "hi ☃"},
		{"add", `{"a":1.5,"b":2}`, "3.5"},
		{"sleep", `{"for":"1ms"}`, "slept 1ms"},
		{"fail", `{"text":"no"}`, "no"},
		{"bigresult", `{"size":100000}`, strings.Repeat("x", 100000)},
		{"env", `{"name":"PATH"}`, os.Getenv("PATH")},
		{"pid", `{}`, fmt.Sprintf("%d %d", f.cmd.Process.Pid, os.Getpid())},
		{"append", fmt.Sprintf(`{"file":%q,"line":"one"}`, file), "appended"},
		{"extra-0002", `{}`, "extra-0002"},
	} {
		if got := f.text(100+i, c.tool, c.args); got != c.want {
			t.Errorf("%s answers %.80q, want %.80q", c.tool, got, c.want)
		}
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "one\n" {
		t.Errorf("append wrote %q, %v", b, err)
	}
	if a := f.call(200, "fail", `{}`); !strings.Contains(string(a.Result), `"isError":true`) {
		t.Errorf("fail gave %s", a.Result)
	}
	if a := f.call(201, "refuse", `{"code":-32050}`); !strings.Contains(string(a.Error), "-32050") {
		t.Errorf("refuse gave %s", a.Error)
	}
	if a := f.call(202, "nonsense", `{}`); !strings.Contains(string(a.Error), "-32602") {
		t.Errorf("an unknown tool gave %s", a.Error)
	}
	f.request(203, "server/discover", `{}`)
	if a := f.answerTo(203); !strings.Contains(string(a.Error), "-32601") {
		t.Errorf("an unknown method gave %s", a.Error)
	}
	f.request(300, "tools/call", `{"name":"sleep","arguments":{"for":"1h"}}`)
	f.send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":300}}`)
	f.quiet()
	f.call(301, "grow", `{"name":"new"}`)
	if l := f.line(); !strings.Contains(l, "list_changed") {
		t.Errorf("grow announced %s", l)
	}
	if got := f.text(302, "new", `{}`); got != "new" {
		t.Errorf("a grown tool answers %q", got)
	}
	f.call(303, "shrink", `{"name":"new"}`)
	f.send(`this is not JSON`)
	if a := f.line(); !strings.Contains(a+f.line(), "-32700") {
		t.Errorf("nonsense gave %s", a)
	}
	f.request(304, "tools/call", `{"name":"crash","arguments":{"code":9}}`)
	f.exits(9)

	g := start(t, "good", "delay=1ms")
	g.initialize()
	g.in.Close()
	g.exits(0)
}

func asks(t *testing.T) {
	f := start(t, "asks")
	f.initialize()
	for id, reply := range map[int]string{5: `"result":{"roots":[]}`, 6: `"error":{"code":-32601,"message":"no"}`} {
		f.request(id, "tools/call", `{"name":"ask","arguments":{"method":"roots/list"}}`)
		var q answer
		if err := json.Unmarshal([]byte(f.line()), &q); err != nil || q.Method != "roots/list" {
			t.Fatalf("asked %+v, %v", q, err)
		}
		f.send(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,` + reply + `}`)
		if a := f.answerTo(id); !strings.Contains(string(a.Result), strings.SplitN(reply, `"`, 3)[1]) {
			t.Errorf("answered %s to %s", a.Result, reply)
		}
	}
}

func exitsAtOnce(t *testing.T) {
	f := start(t, "exits-at-once", "code=5", "text=no key")
	f.exits(5)
	if !strings.Contains(f.err.String(), "no key") {
		t.Errorf("standard error %q", f.err)
	}
}

func crashAfter(t *testing.T) {
	start(t, "crash-after", "after=50ms", "code=4").exits(4)
	f := start(t, "crash-after", "after=1h")
	f.initialize()
	f.lives()
}

func exitsAfterList(t *testing.T) {
	f := start(t, "exits-after-list", "times=2")
	f.initialize()
	f.list(2, "{}")
	f.lives()
	f.list(3, "{}")
	f.exits(1)
}

func diesMidCall(t *testing.T) {
	f := start(t, "dies-mid-call")
	f.initialize()
	f.request(2, "tools/call", `{"name":"echo","arguments":{"text":"x"}}`)
	f.exits(1)
	if l, open := <-f.out; open {
		t.Errorf("answered %s", l)
	}
}

func answersAndDies(t *testing.T) {
	f := start(t, "answers-and-dies")
	f.initialize()
	if got := f.text(2, "echo", `{"text":"x"}`); got != "x" {
		t.Errorf("answered %q", got)
	}
	f.exits(1)
}

func diesOnProbe(t *testing.T) {
	f := start(t, "dies-on-probe")
	f.request(1, "server/discover", "{}")
	f.exits(1)
	g := start(t, "dies-on-probe")
	g.initialize()
	g.text(2, "echo", `{"text":"x"}`)
}

func slowStart(t *testing.T) {
	f := start(t, "slow-start", "after=400ms")
	f.request(1, "ping", "{}")
	f.quiet()
	f.answerTo(1)
}

func ignoresSignals(t *testing.T) {
	f := start(t, "ignores-signals")
	f.initialize()
	f.in.Close()
	interrupt(t, f.cmd.Process)
	f.lives()
	if err := f.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	f.exits(-1)
}

func ignoresEOF(t *testing.T) {
	f := start(t, "ignores-eof")
	f.initialize()
	f.in.Close()
	f.lives()
	if interrupt(t, f.cmd.Process) {
		f.exits(-1)
	}
}

// pidIn reads a process id that a tool answered with, and sees to it that the process does not outlive the test.
func pidIn(t *testing.T, text string) int {
	t.Helper()
	pid, err := strconv.Atoi(strings.Fields(text)[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill() // it may be gone, which is as good
		}
	})
	return pid
}

func grandchild(t *testing.T) {
	start(t, "grandchild", "after=50ms", "for=1s").exits(1)
	f := start(t, "grandchild")
	f.initialize()
	pid := pidIn(t, f.text(2, "child", "{}"))
	f.request(3, "tools/call", `{"name":"crash","arguments":{"code":6}}`)
	f.exits(6)
	f.quiet() // not the end of standard output: the grandchild holds it
	if !alive(pid) {
		t.Error("the grandchild ended with its parent")
	}
}

func ownSession(t *testing.T) {
	f := start(t, "own-session")
	f.initialize()
	pid := pidIn(t, f.text(2, "child", "{}"))
	if !alive(pid) {
		t.Error("the child does not live")
	}
	if sameGroup(f.cmd.Process.Pid, pid) {
		t.Error("the child is in the group of its parent")
	}
}

func launcher(t *testing.T) {
	f := start(t, "launcher", "depth=3", "name=deep")
	if a := f.initialize(); !strings.Contains(string(a.Result), "deep") {
		t.Errorf("initialize gave %s", a.Result)
	}
	text := f.text(2, "pid", "{}")
	pid := pidIn(t, text)
	if parent := strings.Fields(text)[1]; pid == f.cmd.Process.Pid || parent == fmt.Sprint(f.cmd.Process.Pid) {
		t.Errorf("the server is %s and the launcher %d: no tree of depth 3", text, f.cmd.Process.Pid)
	}
	f.in.Close()
	f.exits(0)
}

func stopsReading(t *testing.T) {
	f := start(t, "stops-reading")
	f.initialize()
	f.list(2, "{}")
	f.request(3, "ping", "{}")
	f.quiet()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 64 {
			if _, err := f.in.Write(make([]byte, 64<<10)); err != nil {
				return
			}
		}
	}()
	select {
	case <-done:
		t.Error("4 MiB were read")
	case <-time.After(soon):
	}
	_ = f.cmd.Process.Kill()
	<-done
}

func closesStdout(t *testing.T) {
	f := start(t, "closes-stdout")
	f.initialize()
	f.list(2, "{}")
	select {
	case l, open := <-f.out:
		if open {
			t.Errorf("got %s", l)
		}
	case <-time.After(bound):
		t.Error("standard output is still open")
	}
	f.lives()
}

func cheap(t *testing.T) {
	f := start(t, "cheap")
	f.initialize()
	// What is copied is copied as it stands, whatever is in it, and answers to what came together leave together.
	long := strings.Repeat("y", 300<<10)
	for id, text := range map[int]string{20: `plain`, 21: `a \"quoted\" \\`, 22: long} {
		f.request(id, "tools/call", `{"name":"echo","arguments":{"text":"`+text+`"}}`)
		if a := f.answerTo(id); !strings.Contains(string(a.Result), `"text":"`+text+`"`) {
			t.Errorf("the echo of %.40s is %.200s", text, a.Result)
		}
	}
	f.request(30, "tools/list", `{}`)
	if a := f.answerTo(30); !strings.Contains(string(a.Result), `"echo"`) {
		t.Errorf("tools/list gave %s", a.Result)
	}
}

func TestEchoLeavesWhatItDoesNotKnow(t *testing.T) {
	for _, line := range []string{
		``, `{}`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`,
		`{"method":"tools/call","params":{"arguments":{"text":"no id"}}}`,
		`{"id":1,"method":"tools/call","params":{"arguments":{"text":"no end\\\"}}}`,
		`{"id":1,"method":"tools/call","params":{"arguments":{}}}`,
	} {
		var b strings.Builder
		if servers.Echo(&b, []byte(line)) || b.Len() > 0 {
			t.Errorf("%s is answered with %q", line, b.String())
		}
	}
}
