package report_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/report"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/transports/files"
)

var update = flag.Bool("update", false, "write the golden files of testdata as the reports are now: read the difference")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is another text now (-update rewrites it):\n%s", file, got)
	}
}

func ExampleTerminal() {
	h := &history.History{Plan: scenario.Plan{
		Scenario: scenario.Scenario{Name: "one-crash"}, Seed: 7, Tier: scenario.Sim,
		Servers: []scenario.Server{{Name: "files"}},
	}}
	report.Terminal(os.Stdout, report.Run{
		History: h, Command: "mcpvisor chaos sim one-crash --seed 7",
		Verdicts: []invariant.Verdict{{
			ID: "I6", Title: "One process per server", Answer: invariant.Violated, Server: "files", At: 1500 * time.Millisecond,
			Why: "Connection 2 was opened while connection 1 was still there.",
		}},
	}, false)
	// Output:
	// VIOLATED  one-crash, seed 7
	// Of 1 check, 1 is violated.
	// 1 server, 0 faults, 0 events, 0s of virtual time.
	//
	//   I6   one process per server on files at 1.5s
	//        Connection 2 was opened while connection 1 was still there.
	//
	// replay:
	// mcpvisor chaos sim one-crash --seed 7
}

func small() report.Run { return newDay(10, 20*time.Minute).run() }

func terminal(r report.Run) string {
	var b strings.Builder
	report.Terminal(&b, r, false)
	return b.String()
}

func written(t *testing.T, r report.Run) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "out", "run")
	if err := report.Write(dir, r); err != nil {
		t.Fatal(err)
	}
	return dir
}

func content(t *testing.T, dir, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTheDocumentsOfARun(t *testing.T) {
	r := small()
	larger := scenario.Scenario{Name: "smaller", Servers: []scenario.Group{{Name: "files"}},
		Faults: []scenario.Fault{{Fault: "crash", On: scenario.Selector{"files"}}}}
	r.Found = &report.Found{Scenario: larger, Command: "mcpvisor chaos sim --seed 4"}
	dir := written(t, r)
	for _, name := range []string{"report.json", "junit.xml"} {
		golden(t, name, bytes.ReplaceAll(content(t, dir, name), []byte(supervisor.Version()), []byte("VERSION")))
	}
	if got := string(content(t, dir, "seed")); got != "42\n" {
		t.Errorf("the seed is %q", got)
	}
	for name, want := range map[string]scenario.Scenario{"scenario.yaml": r.History.Plan.Scenario, "found.yaml": larger} {
		if got := content(t, dir, name); !bytes.Equal(got, want.YAML()) {
			t.Errorf("%s is\n%s", name, got)
		}
	}
	file, err := os.Open(report.HistoryFile(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	h, err := history.Read(file)
	if err != nil || len(h.Events) != len(r.History.Events) {
		t.Errorf("the history is not the run's: %v, %d events", err, len(h.Events))
	}
	var d report.Document
	if err := json.Unmarshal(content(t, dir, "report.json"), &d); err != nil {
		t.Fatal(err)
	}
	// Evidence says where it stands in the file: the event there is the one that is told.
	all := bytes.Split(content(t, dir, "history.jsonl"), []byte("\n"))
	for _, v := range d.Verdicts {
		for _, e := range v.Evidence {
			var at history.Event
			if err := json.Unmarshal(all[e.Line-1], &at); err != nil || at.T != e.T || at.Server != e.Server {
				t.Errorf("%s: line %d is %s, not an event of %s at %v", v.ID, e.Line, all[e.Line-1], e.Server, e.T)
			}
		}
	}
}

func TestTheTerminal(t *testing.T) {
	r := small()
	r.Dir = "chaos/a-bad-day-42"
	golden(t, "violated.txt", []byte(terminal(r)))

	r.Verdicts = slices.DeleteFunc(slices.Clone(r.Verdicts), func(v invariant.Verdict) bool { return v.Answer != invariant.Holds })
	golden(t, "passed.txt", []byte(terminal(r)))

	r = small()
	r.Verdicts = slices.DeleteFunc(slices.Clone(r.Verdicts), func(v invariant.Verdict) bool { return v.Answer == invariant.Violated })
	golden(t, "inconclusive.txt", []byte(terminal(r)))

	r = small()
	for i := range r.Verdicts {
		r.Verdicts[i].Answer, r.Verdicts[i].Server, r.Verdicts[i].At = invariant.Violated, "files-003", time.Duration(i)*time.Second
		r.Verdicts[i].Why = strings.Repeat("It was expected to be otherwise. ", 20)
	}
	r.Found = &report.Found{Scenario: scenario.Scenario{Name: "larger"}, Command: "mcpvisor chaos sim --seed 4"}
	r.Dir = "chaos/a-bad-day-42"
	golden(t, "everything.txt", []byte(terminal(r)))
	for n := range len(r.Verdicts) {
		some := r
		some.Verdicts = slices.Clone(r.Verdicts)
		for i := n; i < len(some.Verdicts); i++ {
			some.Verdicts[i].Answer = invariant.Inconclusive
		}
		text := terminal(some)
		all := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
		if len(all) > 25 {
			t.Errorf("with %d violations there are %d lines", n, len(all))
		}
		if all[len(all)-1] != r.Command {
			t.Errorf("the last line is %q", all[len(all)-1])
		}
		for _, l := range all {
			if utf8.RuneCountInString(l) > 80 {
				t.Errorf("a line of %d columns: %s", utf8.RuneCountInString(l), l)
			}
		}
	}
}

func TestColourSaysNothingThatWordsDoNot(t *testing.T) {
	r := small()
	var b strings.Builder
	report.Terminal(&b, r, true)
	text := b.String()
	if !strings.Contains(text, "\x1b[1;31mVIOLATED\x1b[0m") {
		t.Errorf("no colour in %q", text)
	}
	for _, c := range []string{"\x1b[1;31m", "\x1b[0m"} {
		text = strings.ReplaceAll(text, c, "")
	}
	if text != terminal(r) {
		t.Errorf("without its colours it is another text:\n%s", text)
	}
}

func TestOverall(t *testing.T) {
	v := func(answers ...invariant.Answer) (out []invariant.Verdict) {
		for _, a := range answers {
			out = append(out, invariant.Verdict{Answer: a})
		}
		return out
	}
	for _, c := range []struct {
		verdicts []invariant.Verdict
		want     invariant.Answer
	}{
		{nil, invariant.Inconclusive}, {v(invariant.Holds), invariant.Holds},
		{v(invariant.Holds, invariant.Inconclusive), invariant.Inconclusive},
		{v(invariant.Inconclusive, invariant.Violated), invariant.Violated},
		{v(invariant.Violated, invariant.Holds), invariant.Violated},
	} {
		if got := report.Overall(c.verdicts); got != c.want {
			t.Errorf("%v together are %s", c.verdicts, got)
		}
	}
}

func TestAReportIsCompleteOrNotThere(t *testing.T) {
	r := small()
	dir := written(t, r)
	parent := filepath.Dir(dir)
	alone := func() {
		t.Helper()
		entries, err := os.ReadDir(parent)
		if err != nil || len(entries) != 1 {
			t.Errorf("%d entries beside the report: %v %v", len(entries), entries, err)
		}
	}
	alone()
	before := content(t, dir, "report.json")

	t.Run("the same run again", func(t *testing.T) {
		second := r
		second.Took = time.Hour
		if err := report.Write(dir, second); err != nil {
			t.Fatal(err)
		}
		if bytes.Equal(before, content(t, dir, "report.json")) {
			t.Error("the older report is still there")
		}
		alone()
	})
	t.Run("another run", func(t *testing.T) {
		other := newDay(10, time.Minute)
		other.h.Plan.Seed = 43
		err := report.Write(dir, other.run())
		if !errors.Is(err, report.ErrOccupied) || !strings.Contains(err.Error(), "a-bad-day, seed 42") {
			t.Errorf("the error is %v", err)
		}
		if got := string(content(t, dir, "seed")); got != "42\n" {
			t.Errorf("the report of seed %s is there", got)
		}
		alone()
		run := other.run()
		run.Replace = true
		if err := report.Write(dir, run); err != nil {
			t.Fatal(err)
		}
		if got := string(content(t, dir, "seed")); got != "43\n" {
			t.Errorf("the report of seed %s is there", got)
		}
		alone()
	})
	t.Run("something else", func(t *testing.T) {
		for name, beside := range map[string]string{"no report": "", "a report and more": "report.json"} {
			place := filepath.Join(t.TempDir(), "x")
			if beside != "" {
				if err := report.Write(place, r); err != nil {
					t.Fatal(err)
				}
			} else if err := os.Mkdir(place, 0o755); err != nil {
				t.Fatal(err)
			}
			thesis := filepath.Join(place, "thesis.txt")
			if err := os.WriteFile(thesis, []byte("years"), 0o644); err != nil {
				t.Fatal(err)
			}
			run := r
			run.Replace = true
			if err := report.Write(place, run); !errors.Is(err, report.ErrOccupied) {
				t.Errorf("%s: the error is %v", name, err)
			}
			if _, err := os.Stat(thesis); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	t.Run("a newer report", func(t *testing.T) {
		place := t.TempDir()
		if err := os.WriteFile(filepath.Join(place, "report.json"), []byte(`{"version":2,"seed":"42"}`), 0o644); err != nil {
			t.Fatal(err)
		}
		run := r
		run.Replace = true
		var newer *files.NewerError
		if err := report.Write(place, run); !errors.Is(err, report.ErrOccupied) || !errors.As(err, &newer) {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("an empty folder", func(t *testing.T) {
		if err := report.Write(t.TempDir(), r); err != nil {
			t.Error(err)
		}
	})
	t.Run("no place", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := report.Write(filepath.Join(file, "run"), r); err == nil {
			t.Error("a report lies below a file")
		}
	})
}

// hostile is a run whose servers say what acts on terminals, pages and parsers.
func hostile() report.Run {
	const evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>'\"`${alert(3)}]]>\x1b[31mred\x1b]0;title\a\u202egpj.exe\u200b\u2028\x00"
	r := newDay(4, 10*time.Minute)
	name := r.h.Plan.Servers[3].Name
	p := &r.h.Plan
	p.Servers[3].Name, p.Servers[3].Group = evil, evil
	p.Faults[0].Server, p.Faults[0].Fault = evil, evil
	p.Scenario.Name, p.Scenario.About = evil, evil
	run := r.run()
	for i := range r.h.Events {
		e := &r.h.Events[i]
		if e.Server == name || e.Server == evil {
			e.Server, e.Text = evil, evil
			e.Method, e.Tool = evil, evil
		}
	}
	for i := range run.Verdicts {
		v := &run.Verdicts[i]
		v.ID, v.Title, v.Why, v.Server = v.ID+evil, evil, evil, evil
		if i == 1 {
			v.Answer, v.Evidence = invariant.Violated, []int{-1, 1 << 40, 0, len(r.h.Events) - 2}
		}
	}
	run.Command = "mcpvisor chaos sim '" + evil + "'"
	return run
}

func TestWhatServersSayActsOnNobody(t *testing.T) {
	r := hostile()
	dir := written(t, r)
	for name, text := range map[string]string{
		"terminal": terminal(r), "report.json": string(content(t, dir, "report.json")),
		"junit.xml": string(content(t, dir, "junit.xml")),
	} {
		if clean := messages.Printable(text); clean != text && strings.ReplaceAll(clean, "\uFFFD", "") != strings.ReplaceAll(text, "\uFFFD", "") {
			t.Errorf("%s holds characters that act on a terminal: %q", name, text)
		}
	}
	dec := xml.NewDecoder(bytes.NewReader(content(t, dir, "junit.xml")))
	for {
		if _, err := dec.Token(); err != nil {
			if err.Error() != "EOF" {
				t.Errorf("junit.xml: %v", err)
			}
			break
		}
	}
}

// A page of a thousand servers and a day must be one that a browser opens at once, and can be sent by mail.
func TestThePageOfAThousandServersIsSmall(t *testing.T) {
	r := newDay(1000, 24*time.Hour).run()
	page := content(t, written(t, r), "report.html")
	if len(page) > 10_000_000 {
		t.Errorf("%d events are a page of %d bytes", len(r.History.Events), len(page))
	}
	t.Logf("%d events are a page of %d bytes", len(r.History.Events), len(page))
	var d struct {
		Servers []struct {
			Events []int64
			All    int
		}
	}
	text := string(page)
	_, text, _ = strings.Cut(text, `<script type="application/json" id="data">`)
	text, _, _ = strings.Cut(text, "</script>")
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatal(err)
	}
	held, all := 0, 0
	for _, s := range d.Servers {
		held, all = held+len(s.Events)/5, all+s.All
		if len(s.Events)/5 > report.Cap {
			t.Errorf("%d events of one server", len(s.Events)/5)
		}
	}
	if all != len(r.History.Events) || held >= all || held < 100*len(d.Servers) {
		t.Errorf("the page holds %d of %d events, and says of %d that they are there", held, len(r.History.Events), all)
	}
}

func TestRunsWithLittleInThem(t *testing.T) {
	for name, h := range map[string]*history.History{
		"nothing": {},
		"events without a plan": {Events: []history.Event{{T: time.Second, Server: "a", Side: history.World, Kind: history.Open, Conn: 1},
			{T: time.Second, Server: "a", Side: history.World, Kind: "new-kind", Conn: 1}}},
		"a plan without events": {Plan: newDay(10, time.Minute).h.Plan},
		"one instant":           {Events: []history.Event{{Server: "a", Side: history.Manager, Kind: history.Phase, Phase: messages.Connected}}},
	} {
		r := report.Run{History: h}
		dir := written(t, r)
		var d report.Document
		if err := json.Unmarshal(content(t, dir, "report.json"), &d); err != nil || d.Answer != invariant.Inconclusive {
			t.Errorf("%s: %v %s", name, err, d.Answer)
		}
		if text := terminal(r); !strings.Contains(text, fmt.Sprintf("mcpvisor chaos sim scenario.yaml --seed %d\n", h.Plan.Seed)) {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}
