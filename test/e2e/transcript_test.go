package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
)

var updateFiles = flag.Bool("update", false, "write what happens into the transcripts of testdata/stdio")

// TestStdioTranscripts runs every file of testdata/stdio: a real child process, played by this test binary, that writes
// down every byte it is sent. Each file has at its head the sentences of the specification that it shows, and
//
//	-- settings --  era=legacy|modern|auto (auto if not given), handlers, unordered: the order of what is sent, and the
//	                ids that follow from it, are the scheduler's; slow: a machine that takes a second to start a process
//	                makes it a silent server, which is asked initialize as well: that line is left out; relists: a list
//	                that was read before the server agreed to tell of changes is asked for again if the process lives that
//	                long, so a second request for it is left out; once: what failed is
//	                not tried again soon; connect=N, call=N: timeouts in seconds
//	-- server --    what the server does (transcript_server_test.go)
//	-- client --    what the program does: connect · fails WORDS · call TOOL ARGS · call-indented TOOL ARGS · leave TOOL ·
//	                ping · read URI · until N TEXT (the record holds TEXT so often) · again (it is connected once more) ·
//	                stays (it is connected and was never restarted)
//	-- sent --      what the server was sent, byte for byte, and how its process was ended
//	-- heard --     what the program got
//
// -update rewrites the last two. In every one of them each line that was sent is one JSON-RPC message.
func TestStdioTranscripts(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the transcripts tell of signals")
	}
	files, err := filepath.Glob("testdata/stdio/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(archive.Comment), `"`) {
				t.Fatal("a transcript quotes the sentence that it shows at its head")
			}
			got := playTranscript(t, archive)
			kept := slices.DeleteFunc(archive.Files, func(f txtar.File) bool { return f.Name == "sent" || f.Name == "heard" })
			if *updateFiles {
				archive.Files = append(kept, got...)
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			second, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, g := range got {
				if want := sectionOf(second, g.Name); want != string(g.Data) {
					t.Errorf("%s (-update rewrites it)\n--- got\n%s--- want\n%s", g.Name, g.Data, want)
				}
			}
		})
	}
}

func sectionOf(a *txtar.Archive, name string) string {
	for _, f := range a.Files {
		if f.Name == name {
			return string(f.Data)
		}
	}
	return ""
}

// transcriptRun is one transcript that is played.
type transcriptRun struct {
	t        *testing.T
	m        *supervisor.Manager
	record   string
	outcomes []string
	settings map[string]string
}

func playTranscript(t *testing.T, a *txtar.Archive) []txtar.File {
	checkLeaks(t)
	dir := t.TempDir()
	s := &transcriptRun{t: t, record: filepath.Join(dir, "record"), settings: map[string]string{"era": ""}}
	for _, word := range strings.Fields(sectionOf(a, "settings")) {
		key, value, _ := strings.Cut(word, "=")
		s.settings[key] = value
	}
	script := filepath.Join(dir, "script")
	if err := os.WriteFile(script, []byte(sectionOf(a, "server")), 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// A server that ends with its input has the time for it, also on a slow machine; one that does not is not waited for.
	grace := supervisor.Duration(bound)
	if strings.Contains(sectionOf(a, "server"), "ignores eof") {
		grace = toDuration(2)
	}
	spec := supervisor.Spec{
		Command: self, Args: []string{scriptedRole, script, s.record}, Era: messages.Era(s.settings["era"]),
		StopGrace: grace, ConnectTimeout: s.durationOf("connect"), CallTimeout: s.durationOf("call"),
	}
	cfg := supervisor.Config{ClientName: "golden", ClientVersion: "1.0.0",
		Servers: map[string]supervisor.Spec{"scripted": spec}, Restart: restart.DefaultPolicy()}
	if _, ok := s.settings["once"]; ok {
		cfg.Restart.StdioBase, cfg.Restart.Floor, cfg.Restart.Cap = 2*bound, 2*bound, 2*bound
	}
	if _, ok := s.settings["handlers"]; ok {
		p := &testHandlers{answer: acceptWith(`{"name":"Ada"}`), roots: []supervisor.Root{{URI: "file:///w"}}}
		p.configure(&cfg)
	}
	s.m, err = supervisor.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(sectionOf(a, "client")) {
		s.runCommand(strings.TrimSpace(line))
	}
	closeManager(t, s.m)
	raw, err := os.ReadFile(s.record)
	if err != nil {
		t.Fatal(err)
	}
	sent := s.checkRecord(string(raw))
	return []txtar.File{{Name: "sent", Data: []byte(sent)}, {Name: "heard", Data: []byte(strings.Join(s.outcomes, ""))}}
}

func (s *transcriptRun) durationOf(key string) supervisor.Duration {
	n, err := strconv.ParseFloat(s.settings[key], 64)
	if err != nil {
		return 0
	}
	return toDuration(n)
}

func (s *transcriptRun) sentText() string {
	raw, err := os.ReadFile(s.record)
	if err != nil && !os.IsNotExist(err) {
		s.t.Fatal(err)
	}
	return string(raw)
}

func (s *transcriptRun) awaitSent(count int, text string) {
	s.t.Helper()
	eventually(s.t, fmt.Sprintf("%q was sent %d times:\n%s", text, count, s.sentText()), func() bool {
		return strings.Count(s.sentText(), text) >= count
	})
}

func (s *transcriptRun) addOutcome(format string, args ...any) {
	s.outcomes = append(s.outcomes, fmt.Sprintf(format, args...)+"\n")
}

func (s *transcriptRun) runCommand(line string) {
	t := s.t
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "", "#":
	case "connect":
		awaitConnected(t, s.m, "scripted")
		st := statusOf(t, s.m, "scripted")
		s.addOutcome("connected: %s, version %s", st.Era, st.ProtocolVersion)
	case "fails":
		eventually(t, "it has failed", func() bool {
			return statusOf(t, s.m, "scripted").Status == messages.Failed
		})
		if st := statusOf(t, s.m, "scripted"); !containsWords(st.Error, rest) {
			t.Errorf("it failed because %s", st.Error)
		}
		s.addOutcome("failed: %s", statusOf(t, s.m, "scripted").Class)
	case "call", "call-indented":
		tool, args, _ := strings.Cut(rest, " ")
		raw := json.RawMessage(args)
		if verb == "call-indented" {
			raw = json.RawMessage(strings.NewReplacer(",", ",\r\n\t", "{", "{\n\t").Replace(args))
		}
		res, err := s.m.CallServerTool(testContext(t, bound), "scripted", tool, raw)
		s.addResult("call "+tool, func() string { return string(res.Raw) }, err)
	case "read":
		res, err := s.m.ReadServerResource(testContext(t, bound), "scripted", rest)
		s.addResult("read "+rest, func() string { return string(res.Raw) }, err)
	case "leave":
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			_, err := s.m.CallServerTool(ctx, "scripted", rest, nil)
			ended <- err
		}()
		s.awaitSent(1, `"name":"`+rest+`"`)
		cancel()
		s.addResult("leave "+rest, nil, <-ended)
		s.awaitSent(1, "notifications/cancelled")
	case "ping":
		_, err := s.m.Ping(testContext(t, bound), "scripted")
		s.addResult("ping", func() string { return "ok" }, err)
	case "until":
		count, text, _ := strings.Cut(rest, " ")
		n, err := strconv.Atoi(count)
		if err != nil {
			t.Fatal(line)
		}
		s.awaitSent(n, text)
	case "again":
		eventually(t, "it is connected again", func() bool {
			st := statusOf(t, s.m, "scripted")
			return st.Status == messages.Connected && st.Restarts > 0
		})
		s.addOutcome("connected again")
	case "stays":
		if st := statusOf(t, s.m, "scripted"); st.Status != messages.Connected || st.Restarts != 0 {
			t.Errorf("it is %s, %d restarts", st.Status, st.Restarts)
		}
	default:
		t.Fatalf("what is %s", line)
	}
}

func (s *transcriptRun) addResult(what string, result func() string, err error) {
	var e *supervisor.Error
	switch {
	case err == nil:
		s.addOutcome("%s: %s", what, result())
	case errors.As(err, &e):
		s.addOutcome("%s: %s %s", what, e.Outcome, e.Class)
	default:
		s.t.Errorf("%s: %T %v", what, err, err)
	}
}

var idPattern = regexp.MustCompile(`"id":\d+`)

// checkRecord is the record, once every line of it is known to be one message, and every id of ours one that was never used.
//
// 2025-11-25, stdio: "The client MUST NOT write anything to the server's stdin that is not a valid MCP message." Requests:
// "The request ID MUST NOT have been previously used by the requestor within the same session."
func (s *transcriptRun) checkRecord(record string) string {
	var processes [][]string
	used := map[string]bool{}
	for line := range strings.Lines(record) {
		line = strings.TrimSuffix(line, "\n")
		if line == "--- started" {
			processes, used = append(processes, nil), map[string]bool{}
		}
		last := len(processes) - 1
		processes[last] = append(processes[last], line)
		if strings.HasPrefix(line, "--- ") {
			continue
		}
		var m struct {
			JSONRPC string          `json:"jsonrpc"`
			ID      json.RawMessage `json:"id"`
			Method  string          `json:"method"`
			Result  json.RawMessage `json:"result"`
			Error   json.RawMessage `json:"error"`
		}
		err := json.Unmarshal([]byte(line), &m)
		if err != nil || m.JSONRPC != "2.0" || m.Method == "" && (m.ID == nil || (m.Result == nil) == (m.Error == nil)) {
			s.t.Errorf("this is no JSON-RPC message: %s", line)
		}
		if m.Method != "" && m.ID != nil {
			if used[string(m.ID)] || string(m.ID) == "null" {
				s.t.Errorf("this id was used before: %s", line)
			}
			used[string(m.ID)] = true
		}
		if m.Method == "" && s.settings["era"] == "modern" {
			s.t.Errorf("the client never writes JSON-RPC responses: %s", line)
		}
	}
	var all []string
	_, unordered := s.settings["unordered"]
	for _, lines := range processes {
		if _, slow := s.settings["slow"]; slow {
			lines = slices.DeleteFunc(lines, func(l string) bool { return strings.Contains(l, `"method":"initialize"`) })
		}
		if unordered {
			for i := range lines {
				lines[i] = idPattern.ReplaceAllString(lines[i], `"id":N`)
			}
			slices.SortStableFunc(lines, func(a, b string) int { return strings.Compare(sortKey(a), sortKey(b)) })
		}
		if _, relists := s.settings["relists"]; relists {
			lines = slices.CompactFunc(lines, func(a, b string) bool { return a == b && strings.Contains(a, `"method":"tools/list"`) })
		}
		all = append(all, lines...)
	}
	return strings.Join(all, "\n") + "\n"
}

// sortKey keeps the beginning of a process before everything that it was sent, and its end behind.
func sortKey(line string) string {
	switch {
	case line == "--- started":
		return " "
	case strings.HasPrefix(line, "--- "):
		return "~"
	}
	return line
}
