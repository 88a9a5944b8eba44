package check_test

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/check"
)

func TestTheReportIsWrittenForProgramsAndForCI(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	r := check.Report{Took: time.Second, Servers: []check.Server{{Name: "files", Took: time.Second, Findings: []check.Finding{
		{ID: "ping", Title: "ping", Verdict: check.Pass, Text: "fine"},
		{ID: "noise", Title: "standard output", Verdict: check.Fail, Text: "3 lines <were> no messages", Fix: "log elsewhere"},
		{ID: "call", Title: "call", Verdict: check.NotTried, Text: "no tool may be called"},
	}}}}
	if err := check.Write(dir, r); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		t.Fatal(err)
	}
	var second check.Report
	if err := json.Unmarshal(text, &second); err != nil || second.Verdict() != check.Fail || len(second.Servers[0].Findings) != 3 {
		t.Errorf("report.json: %v\n%s", err, text)
	}
	if text, err = os.ReadFile(filepath.Join(dir, "junit.xml")); err != nil {
		t.Fatal(err)
	}
	var suites struct {
		Suites []struct {
			Tests, Failures, Skipped string `xml:",attr"`
		} `xml:"testsuite"`
	}
	if err := xml.Unmarshal(text, &suites); err != nil || len(suites.Suites) != 1 {
		t.Errorf("junit.xml: %v\n%s", err, text)
	}
	for _, want := range []string{`tests="3" failures="1" skipped="1"`, "3 lines &lt;were&gt; no messages", "no tool may be called"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
}

func TestACallIsReadFromText(t *testing.T) {
	for text, want := range map[string]string{
		"echo":                   `echo {}`,
		` echo  {"text": "a b"}`: `echo {"text": "a b"}`,
	} {
		c, err := check.ParseCall(text)
		if got := c.Tool + " " + string(c.Args); err != nil || got != want {
			t.Errorf("%q is %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "  ", "echo [1]", "echo {", "echo null", "echo a=b"} {
		if c, err := check.ParseCall(text); err == nil {
			t.Errorf("%q is taken for %v", text, c)
		}
	}
}

// What may not start is not started, and nothing is concluded of it.
func TestWhatMayNotStartIsNotStarted(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	spec := fixture("good", "record="+ran)
	held, disabled, refused := spec, spec, spec
	held.Hold, disabled.Disabled = "nobody approved it", true
	refused.Cwd = "refuse-me"
	r, err := check.Run(t.Context(), check.Options{
		Servers: map[string]messages.Spec{"held": held, "disabled": disabled, "refused": refused},
		Refusal: func(s messages.Spec) string {
			if s.Cwd != "" {
				return "not here"
			}
			return ""
		},
	})
	if err != nil || r.Verdict() != check.NotTried || len(r.Servers) != 3 {
		t.Errorf("%v %s %v", err, r.Verdict(), r.Servers)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("one was started")
	}
	r, err = check.Run(t.Context(), check.Options{Servers: map[string]messages.Spec{"it": {Invalid: "no command"}}})
	if err != nil || r.Verdict() != check.Fail {
		t.Errorf("an entry that cannot work is %s, %v", r.Verdict(), err)
	}
}

// Only what is listed, or trusted and harmless by its own word, is called.
func TestNoToolIsCalledUnasked(t *testing.T) {
	for _, c := range []struct {
		name    string
		trusted bool
		calls   []check.Call
		want    []string
	}{
		{"neither listed nor trusted", false, nil, nil},
		{"trusted", true, nil, []string{"look"}},
		{"listed", false, []check.Call{{Tool: "write"}}, []string{"write"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			record := filepath.Join(t.TempDir(), "record")
			spec := fixture("hints", "record="+record)
			spec.Trusted = c.trusted
			one(t, spec, func(o *check.Options) { o.Calls = map[string][]check.Call{"it": c.calls} })
			text, err := os.ReadFile(record)
			if err != nil {
				t.Fatal(err)
			}
			called := map[string]bool{}
			for l := range strings.Lines(string(text)) {
				var m struct{ Method, Params string }
				var p struct{ Name string }
				if json.Unmarshal([]byte(l), &m) == nil && m.Method == "tools/call" && json.Unmarshal([]byte(m.Params), &p) == nil {
					called[p.Name] = true
				}
			}
			if len(called) != len(c.want) {
				t.Errorf("called %v, want %v", called, c.want)
			}
			for _, name := range c.want {
				if !called[name] {
					t.Errorf("called %v, want %v", called, c.want)
				}
			}
		})
	}
}
