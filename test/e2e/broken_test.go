package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/test/servers"
	"github.com/mcpvisor/mcpvisor/test/servers/web"
)

// brokenServer is a server that cannot be used, and what must be said of it.
type brokenServer struct {
	spec  supervisor.Spec
	class messages.Class
	retry messages.Retry // RetryAt stands for parked as well: it depends on the moment
	words []string
	// checkAlso is what else must hold of its status.
	checkAlso func(st supervisor.Status) error
}

// connectTimeout of those that never answer. It is what they are waited for, and no more.
const connectTimeout = 3

func brokenServers(t *testing.T, canary string) map[string]brokenServer {
	t.Helper()
	dir := t.TempDir()
	file := func(name, content string, mode os.FileMode) supervisor.Spec {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		return supervisor.Spec{Command: path}
	}
	never := func(s supervisor.Spec) supervisor.Spec {
		return changeSpec(s, func(s *supervisor.Spec) { s.ConnectTimeout, s.StopGrace = toDuration(connectTimeout), toDuration(0.5) })
	}
	at := func(h http.Handler) supervisor.Spec {
		return supervisor.Spec{Type: messages.HTTP, URL: web.Serve(t, h) + "/mcp",
			Headers: map[string]string{"Authorization": "Bearer " + canary}}
	}
	mute, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { mute.Close() })
	go speakSSH(mute)
	target := &web.Recorder{Next: web.Good()}
	t.Cleanup(func() {
		if n := len(target.Requests()); n != 0 {
			t.Errorf("a redirect to another origin was followed %d times", n)
		}
	})
	throttled := &web.Recorder{Next: web.Throttled(1000, time.Hour, web.Good())}
	t.Cleanup(func() {
		if n := len(throttled.Requests()); n != 1 {
			t.Errorf("%d requests to a server that asked to wait an hour", n)
		}
	})
	waits := func(st supervisor.Status) error {
		if st.NextAttempt == nil || time.Until(*st.NextAttempt) < 50*time.Minute {
			return fmt.Errorf("the next attempt is at %v, an hour was asked for", st.NextAttempt)
		}
		return nil
	}
	challenged := func(st supervisor.Status) error {
		if c := st.Challenge; c == nil || c.Scheme != "Bearer" || c.Scope != "read write" || c.ResourceMetadata == "" {
			return fmt.Errorf("its challenge is %+v", st.Challenge)
		}
		return nil
	}
	const (
		none   = messages.RetryNever
		second = messages.RetryAt
	)
	return map[string]brokenServer{
		"missing-binary": {spec: supervisor.Spec{Command: "e2e-no-such-program"}, class: messages.ClassMissing, retry: none,
			words: []string{"e2e-no-such-program", "not found", "PATH"}},
		"missing-path": {spec: supervisor.Spec{Command: filepath.Join(dir, "nothing", "here")}, class: messages.ClassMissing,
			retry: none, words: []string{"nothing", "does not exist"}},
		"command-line-in-command": {spec: supervisor.Spec{Command: "node server.js --port 1"}, class: messages.ClassMissing,
			retry: none, words: []string{"node", "not found", `"args"`}},
		"not-executable": {spec: file("not-executable", "#!/bin/sh\n", 0o644), class: messages.ClassConfig, retry: none,
			words: []string{"not-executable", "not executable", "chmod +x"}},
		"a-directory": {spec: supervisor.Spec{Command: dir}, class: messages.ClassConfig, retry: none,
			words: []string{"directory"}},
		"no-interpreter": {spec: file("no-interpreter", "#!/no/such/interpreter\n", 0o755), class: messages.ClassMissing,
			retry: none, words: []string{"interpreter", "does not exist"}},
		"not-a-program": {spec: file("not-a-program", "\x00\x01\x02", 0o755), class: messages.ClassConfig, retry: none,
			words: []string{"cannot be executed"}},
		"bad-cwd": {spec: changeSpec(fixtureSpec("good"), func(s *supervisor.Spec) { s.Cwd = filepath.Join(dir, "gone") }),
			class: messages.ClassConfig, retry: none, words: []string{"working directory", "gone", "does not exist", "cwd"}},
		"bad-type": {spec: supervisor.Spec{Type: "pigeon", URL: "http://127.0.0.1:1"}, class: messages.ClassConfig,
			retry: none, words: []string{"pigeon", "unknown"}},
		"bad-url": {spec: supervisor.Spec{URL: "ftp://127.0.0.1/mcp"}, class: messages.ClassConfig, retry: none,
			words: []string{"url", "http://"}},
		"nothing-given": {spec: supervisor.Spec{}, class: messages.ClassConfig, retry: none,
			words: []string{"neither a command nor a url"}},

		"silent": {spec: never(fixtureSpec("silent")), class: messages.ClassTimeout, retry: second,
			words: []string{"no answer to initialize within 3s", "stderr", "connectTimeout"}},
		"exits-at-once": {spec: fixtureSpec("exits-at-once"), class: messages.ClassExited, retry: second,
			words: []string{"exit status 3", "no licence found"},
			checkAlso: func(st supervisor.Status) error {
				if !containsWords(st.StderrTail, "no licence found") {
					return fmt.Errorf("its stderr is %q", st.StderrTail)
				}
				return nil
			}},
		"exits-and-leaves-a-grandchild": {spec: never(fixtureSpec("grandchild", "after=1ms", "signals=ignore", "for=10m")),
			class: messages.ClassExited, retry: second, words: []string{"exit status 1"}},
		"wrong-version": {spec: fixtureSpec("wrong-version"), class: messages.ClassUnsupported, retry: none,
			words: []string{"1999-01-01", "version"}},
		"refuses-initialize": {spec: fixtureSpec("refuses-initialize"), class: messages.ClassProtocol, retry: second,
			words: []string{"rejected initialize", "not today"}},
		"never-lists": {spec: never(fixtureSpec("no-list")), class: messages.ClassTimeout, retry: second,
			words: []string{"no answer to tools/list"}},
		"refuses-list": {spec: fixtureSpec("refuses-list"), class: messages.ClassProtocol, retry: second,
			words: []string{"tools/list", "the list is not available"}},
		"not-a-list": {spec: fixtureSpec("not-a-list"), class: messages.ClassProtocol, retry: second,
			words: []string{"tool list"}},
		"cursor-loop": {spec: fixtureSpec("cursor-loop"), class: messages.ClassProtocol, retry: second,
			words: []string{"cursor"}},

		"dead-port": {spec: supervisor.Spec{URL: fmt.Sprintf("http://127.0.0.1:%d/mcp", freePort(t))},
			class: messages.ClassNetwork, retry: second, words: []string{"127.0.0.1", "refused the connection"}},
		"dead-port-sse": {spec: supervisor.Spec{Type: messages.SSE, URL: fmt.Sprintf("http://127.0.0.1:%d/sse", freePort(t))},
			class: messages.ClassNetwork, retry: second, words: []string{"127.0.0.1", "refused the connection"}},
		"no-tls": {spec: changeSpec(at(web.Good()), func(s *supervisor.Spec) {
			s.URL = strings.Replace(s.URL, "http://", "https://", 1)
		}), class: messages.ClassNetwork, retry: second, words: []string{"does not speak TLS", "http://"}},
		"not-http": {spec: supervisor.Spec{URL: "http://" + mute.Addr().String() + "/mcp"}, class: messages.ClassNetwork,
			retry: second, words: []string{mute.Addr().String(), "does not speak HTTP"}},
		"401": {spec: at(web.RequireToken("another", web.Good())), class: messages.ClassUnauthorized, retry: none,
			words: []string{"asks for authorization", "401"}, checkAlso: challenged},
		"401-sse": {spec: changeSpec(at(web.RequireToken("another", web.Good())), func(s *supervisor.Spec) {
			s.Type, s.URL = messages.SSE, strings.Replace(s.URL, "/mcp", "/sse", 1)
		}), class: messages.ClassUnauthorized, retry: none,
			words: []string{"asks for authorization", "401"}, checkAlso: challenged},
		"403": {spec: at(web.Forbidden("admin")), class: messages.ClassForbidden, retry: second,
			words: []string{"403", "forbids"}},
		"404": {spec: at(web.Status(http.StatusNotFound)), class: messages.ClassNetwork, retry: second,
			words: []string{"404", "nothing at this address", "URL"}},
		"405": {spec: at(web.Status(http.StatusMethodNotAllowed)), class: messages.ClassProtocol, retry: second,
			words: []string{"405", `"sse"`}},
		"500": {spec: at(web.FailingJSON()), class: messages.ClassNetwork, retry: second,
			words: []string{"500", "cannot answer now"}},
		"429": {spec: at(throttled), class: messages.ClassThrottled, retry: second, words: []string{"429", "asks to wait 1h"},
			checkAlso: waits},
		"black-hole": {spec: never(at(web.BlackHole())), class: messages.ClassTimeout, retry: second,
			words: []string{"no answer to initialize"}},
		"silent-stream": {spec: never(at(web.Silent())), class: messages.ClassTimeout, retry: second,
			words: []string{"no answer to initialize"}},
		"slow-loris": {spec: never(at(web.Drip(20 * time.Millisecond))), class: messages.ClassTimeout, retry: second,
			words: []string{"no answer to initialize"}},
		"a-web-page": {spec: at(web.WrongType()), class: messages.ClassProtocol, retry: second,
			words: []string{"text/html"}},
		"not-json": {spec: at(web.NotJSON()), class: messages.ClassProtocol, retry: second,
			words: []string{"answered", "something else"}},
		"other-origin": {spec: at(web.Redirect(web.Serve(t, target), http.StatusTemporaryRedirect)),
			class: messages.ClassProtocol, retry: second,
			words: []string{"redirect", "another origin", "nothing was sent there"}},
	}
}

// speakSSH greets whoever connects as an SSH server does.
func speakSSH(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = c.Write([]byte("SSH-2.0-OpenSSH_9.9\r\n"))
		c.Close()
	}
}

// statusError says what the status of a broken server lacks; nil if nothing.
func (b brokenServer) statusError(st supervisor.Status) error {
	phase := messages.Failed
	if b.class == messages.ClassUnauthorized {
		phase = messages.NeedsAuth
	}
	retry := st.Retry
	if retry == messages.RetryParked || phase == messages.NeedsAuth && retry == "" && st.NextAttempt == nil {
		retry = b.retry
	}
	switch {
	case st.Status != phase:
		return fmt.Errorf("it is %s (%s), not %s", st.Status, st.Reason, phase)
	case b.class != "" && st.Class != b.class:
		return fmt.Errorf("its class is %q, not %q", st.Class, b.class)
	case b.retry != "" && retry != b.retry:
		return fmt.Errorf("what follows is %q, not %q", st.Retry, b.retry)
	case b.retry == messages.RetryAt && st.NextAttempt == nil:
		return errors.New("it is not said when it is tried again")
	case b.retry == messages.RetryNever && st.NextAttempt != nil:
		return fmt.Errorf("it is tried again at %v", st.NextAttempt)
	case !containsWords(st.Error, b.words...):
		return fmt.Errorf("%q does not say all of %q", st.Error, b.words)
	case b.checkAlso != nil:
		return b.checkAlso(st)
	}
	return nil
}

// readableError says what is wrong with a sentence that a person shall read; nil if nothing.
func readableError(sentence string) error {
	if sentence == "" || messages.Line(sentence, 0) != sentence || len(sentence) > 600 {
		return fmt.Errorf("not one printable line: %q", sentence)
	}
	for _, noise := range []string{"dial tcp", "fork/exec", "exec:", "%!", "goroutine", "0x",
		"context deadline", "context canceled", "<nil>", "EOF", "net/http", "unsupported protocol scheme", "\\u"} {
		if strings.Contains(sentence, noise) {
			return fmt.Errorf("%q is no word for people, in %q", noise, sentence)
		}
	}
	return nil
}

// startCallers call each member of a fleet again and again, and report every call that is not right. stop ends them and
// gives the durations of all calls.
func startCallers(t *testing.T, m *supervisor.Manager, members map[string]fleetServer) (stop func() []time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	took := make(chan []time.Duration, len(members))
	calling := 0
	for name, s := range members {
		if s.tool == "" {
			continue
		}
		calling++
		go func() {
			var mine []time.Duration
			defer func() { took <- mine }()
			for ctx.Err() == nil {
				begin := time.Now()
				res, err := m.CallServerTool(context.Background(), name, s.tool, s.args)
				if invalid := s.answerProblem(res, err); invalid != "" {
					t.Errorf("a healthy server was disturbed: %s: %s", name, invalid)
					return
				}
				mine = append(mine, time.Since(begin))
				time.Sleep(20 * time.Millisecond)
			}
		}()
	}
	return func() []time.Duration {
		cancel()
		var all []time.Duration
		for range calling {
			all = append(all, <-took...)
		}
		slices.Sort(all)
		return all
	}
}

// Three dozen servers that are broken in as many ways, beside every real one: each is reported within its bound, with
// the right status and in words for people, while the healthy ones answer every call.
func TestBrokenServersAreReportedAndDisturbNobody(t *testing.T) {
	seeds.Shows(t, "000.3.status-failed", "000.3.status-needs-auth", "000.3.status-error", "000.8.list-failure",
		"000.11.status-values", "001.7.down-at-startup", "004.e.errors", "004.nfr2.timeouts", "004.fr6.ac-status")
	checkLeaks(t)
	const canary = "canary-of-broken-77b1e0"
	members := newFleet(t, t.TempDir())
	ill := brokenServers(t, canary)
	specs := specsOf(members)
	for name, b := range ill {
		specs["broken-"+name] = b.spec
	}
	begin := time.Now()
	m := startManager(t, supervisor.Config{Servers: specs})
	awaitConnected(t, m, slices.Collect(maps.Keys(members))...)
	t.Logf("%d healthy servers beside %d broken ones were connected after %v", len(members), len(ill),
		time.Since(begin).Round(time.Millisecond))
	stop := startCallers(t, m, members)

	table := &strings.Builder{}
	rows := tabwriter.NewWriter(table, 0, 8, 2, ' ', 0)
	for _, name := range slices.Sorted(maps.Keys(ill)) {
		b := ill[name]
		var st supervisor.Status
		var invalid error
		if !isEventually(bound, func() bool {
			st = statusOf(t, m, "broken-"+name)
			invalid = b.statusError(st)
			return invalid == nil
		}) {
			t.Errorf("%s: %v: %s", name, invalid, st.Error)
		}
		if err := readableError(st.Error); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if strings.Contains(asJSON(t, st), canary) {
			t.Errorf("%s: its status holds the value of a header: %s", name, asJSON(t, st))
		}
		_, err := m.CallServerTool(testContext(t, bound), "broken-"+name, "echo", nil)
		if !errors.Is(err, supervisor.ErrNotSent) {
			t.Errorf("%s: a call ends with %v", name, err)
		}
		fmt.Fprintf(rows, "%s\t%s\t%s\t%s\t%s\n", name, st.Status, st.Class, st.Retry, st.Error)
	}
	all := stop()
	if err := rows.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("all were reported after %v\n%s", time.Since(begin).Round(time.Millisecond), table)
	if len(all) > 0 {
		t.Logf("%d calls of healthy servers meanwhile: p50 %v, p99 %v, worst %v", len(all), all[len(all)/2],
			all[len(all)*99/100], all[len(all)-1])
	}
	for name := range members {
		if st := statusOf(t, m, name); st.Status != messages.Connected || st.Restarts != 0 {
			t.Errorf("%s is %s, %d restarts", name, st.Status, st.Restarts)
		}
	}
}

// Servers that misbehave and can be used all the same, beside others that make trouble after they were connected.
// No other server is disturbed, and what is wrong is visible.
func TestMisbehavingServersAreUsedAsFarAsTheyCanBe(t *testing.T) {
	seeds.Shows(t, "004.fr4.ac-timeout")
	checkLeaks(t)
	healthy := map[string]fleetServer{}
	for i := range 4 {
		healthy[fmt.Sprintf("healthy-%d", i)] = fleetServer{
			spec: fixtureSpec("good"), tool: "echo", args: object{"text": "hi"}, answer: "hi",
		}
	}
	specs := specsOf(healthy)
	for _, kind := range []string{"noise", "bad-schemas", "duplicates", "stderr-flood", "hangs-on-call", "huge-line",
		"odd-lines", "odd-answers", "late-answers", "progress-forever", "hostile-text", "long-names", "bad-results",
		"list-feedback",
		"flood", "endless-line", "closes-stdout", "stops-reading", "exits-after-list", "ignores-signals"} {
		specs[kind] = changeSpec(fixtureSpec(kind), func(s *supervisor.Spec) {
			s.StopGrace = toDuration(0.5)
			switch kind {
			case "hangs-on-call", "progress-forever": // the end of no other call is its deadline's
				s.CallTimeout, s.MaxCallTimeout = toDuration(5), toDuration(10)
			case "endless-line":
				s.MaxMessage = 1 << 20 // of 16 MiB, 2 GiB are read before the line is said to have no end
			}
		})
	}
	m := startManager(t, supervisor.Config{Servers: specs})
	usable := []string{"noise", "bad-schemas", "duplicates", "stderr-flood", "hangs-on-call", "huge-line", "odd-lines",
		"odd-answers", "late-answers", "progress-forever", "hostile-text", "long-names", "bad-results", "list-feedback",
		"ignores-signals"}
	awaitConnected(t, m, append(slices.Collect(maps.Keys(healthy)), usable...)...)
	stop := startCallers(t, m, healthy)

	for _, name := range []string{"noise", "bad-schemas", "duplicates", "stderr-flood", "odd-lines", "odd-answers",
		"late-answers", "hostile-text", "list-feedback", "ignores-signals"} {
		checkText(t, m, name, "echo", object{"text": "fine"}, "fine")
	}
	if st := statusOf(t, m, "noise"); st.Noise < 3 {
		t.Errorf("noise: %d lines were counted", st.Noise)
	}
	if st := statusOf(t, m, "stderr-flood"); len(st.StderrTail) == 0 || len(st.StderrTail) > 64<<10 {
		t.Errorf("stderr-flood: %d bytes of stderr are kept", len(st.StderrTail))
	}
	// One bad tool costs no other, and is named with the reason.
	st := statusOf(t, m, "bad-schemas")
	for _, tool := range append(servers.GoodTools(), servers.UsableTools()...) {
		if !slices.Contains(toolNames(m, "bad-schemas"), tool) {
			t.Errorf("bad-schemas: the usable tool %s is not offered", tool)
		}
	}
	offered := toolNames(m, "bad-schemas")
	for _, tool := range []string{"schema-is-text", "schema-is-array", "type-is-array-of-numbers", "type-is-unknown",
		"properties-is-text", "required-is-text"} {
		if slices.Contains(offered, tool) || !slices.ContainsFunc(st.Quarantined, func(q messages.QuarantinedTool) bool {
			return q.Name == tool
		}) {
			t.Errorf("bad-schemas: %s is not quarantined: offered %v, quarantined %+v", tool, offered, st.Quarantined)
		}
	}
	for _, q := range append(st.Quarantined, statusOf(t, m, "duplicates").Quarantined...) {
		if err := readableError(q.Reason); err != nil {
			t.Errorf("quarantined %s: %v", q.Name, err)
		}
	}
	if len(statusOf(t, m, "duplicates").Quarantined) != 2 {
		t.Errorf("duplicates: one of two tools was dropped in silence: %+v", statusOf(t, m, "duplicates").Quarantined)
	}
	seen := map[string]bool{}
	for e := range m.Tools().All() {
		if seen[e.Name] || len(e.Name) > 64 {
			t.Errorf("a name twice, or too long: %s", e.Name)
		}
		seen[e.Name] = true
	}
	for _, e := range m.Tools().Server("long-names") {
		if tool := e.Tool.Name; !slices.Contains(servers.GoodTools(), tool) {
			checkText(t, m, "long-names", tool, nil, tool)
			if res, err := m.CallTool(testContext(t, bound), e.Name, nil); err != nil || res.Text() != tool {
				t.Errorf("long-names: %s as %s: %v, %v", tool, e.Name, res, err)
			}
		}
	}
	if text := statusOf(t, m, "hostile-text"); messages.Printable(asJSON(t, text.ServerInfo)+text.StderrTail) !=
		asJSON(t, text.ServerInfo)+text.StderrTail {
		t.Errorf("hostile-text: %q, %q", text.ServerInfo, text.StderrTail)
	}

	// R1: a call that hangs ends at its deadline as outcome unknown; the session is kept.
	for _, name := range []string{"hangs-on-call", "progress-forever"} {
		_, err := m.CallServerTool(testContext(t, bound), name, "echo", object{"text": "?"})
		if !errors.Is(err, supervisor.ErrOutcomeUnknown) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", name, err)
		}
		if err := readableError(err.Error()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// P8: a line of 32 MiB is one call's error and no more.
	_, err := m.CallServerTool(testContext(t, bound), "huge-line", "huge", nil)
	var e *supervisor.Error
	if !errors.As(err, &e) || e.Class != messages.ClassProtocol || e.Outcome != messages.OutcomeUnknown {
		t.Errorf("huge-line: %v", err)
	}
	checkText(t, m, "huge-line", "echo", object{"text": "fine"}, "fine")
	for _, name := range usable {
		if st := statusOf(t, m, name); st.Status != messages.Connected || st.Restarts != 0 {
			t.Errorf("%s is %s (%s), %d restarts", name, st.Status, st.Error, st.Restarts)
		}
	}

	// Those that turn bad later are taken away and tried again; each says why.
	for name, words := range map[string][]string{
		"flood": {"standard output"}, "endless-line": {"line"}, "closes-stdout": {"output"},
		"exits-after-list": {"exit status 1"},
	} {
		eventually(t, name+" says why", func() bool {
			history, err := m.History(name)
			if err != nil {
				t.Fatal(err)
			}
			return slices.ContainsFunc(history, func(e supervisor.HistoryEntry) bool { return containsWords(e.Text, words...) })
		})
		// It is counted when the connection has released everything, a moment after it is told.
		eventually(t, name+"'s failure is counted", func() bool { return statusOf(t, m, name).Attempts > 0 })
	}
	calls := stop()
	t.Logf("%d calls of healthy servers meanwhile: p99 %v, worst %v", len(calls), calls[len(calls)*99/100],
		calls[len(calls)-1])
}
