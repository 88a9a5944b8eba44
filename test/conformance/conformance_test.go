package conformance

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/peers"
)

// play is the environment variable by which a test makes this binary play the suite.
const play = "MCPVISOR_TEST_PLAY_SUITE"

func TestMain(m *testing.M) {
	if part := os.Getenv(play); part != "" {
		os.Exit(suite(part))
	}
	os.Exit(m.Run())
}

// suite is a stand-in for the suite: it writes checks.json as that does, and does what its part says.
func suite(part string) int {
	if part == "sleeper" {
		time.Sleep(time.Minute)
		return 0
	}
	folder := filepath.Join(os.Args[len(os.Args)-1], "name-with-the-time")
	write := func(name, text string) {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			panic(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			panic(err)
		}
	}
	const good = `[{"id":"a","name":"A","status":"SUCCESS"},{"id":"b","name":"B","status":"INFO"}]`
	switch part {
	case "passes":
		write("checks.json", good)
		return 0
	case "fails":
		write("checks.json", `[{"name":"A","status":"FAILURE","errorMessage":"no header"}]`)
		return 1
	case "warns":
		write("checks.json", `[{"name":"A","status":"SUCCESS"},{"name":"B","status":"WARNING","description":"should"}]`)
		return 1
	case "client fails":
		write("checks.json", good)
		write("stderr.txt", "log\nclient: not connected\n")
		return 1
	case "times out":
		write("checks.json", good)
		fmt.Println("CLIENT TIMED OUT - Test incomplete")
		return 1
	case "skips":
		return 0
	case "looks at nothing":
		write("checks.json", `[{"name":"A","status":"SKIPPED"}]`)
		return 0
	case "leaves":
		write("checks.json", good)
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), play+"=sleeper")
		if err := child.Start(); err != nil {
			panic(err)
		}
		return 0
	}
	return 2
}

// TestARunPassesOnlyIfTheSuiteSaysSoAndSomethingWasChecked plays every way in which a run of the suite ends.
func TestARunPassesOnlyIfTheSuiteSaysSoAndSomethingWasChecked(t *testing.T) {
	for part, reason := range map[string]string{
		"passes":           "",
		"fails":            "failure A: no header",
		"warns":            "warning B: should",
		"client fails":     "the client failed: client: not connected",
		"times out":        "the client did not end within 30s",
		"skips":            "the suite wrote no checks.json",
		"looks at nothing": "no check succeeded",
	} {
		t.Run(part, func(t *testing.T) {
			t.Setenv(play, part)
			o := stand(t).One(t.Context(), Run{Scenario: "auth/x", Version: "2025-11-25"})
			if got := strings.Join(o.Reasons(), "\n"); !strings.Contains(got, reason) || (got == "") != (reason == "") {
				t.Errorf("reasons are %q, want %q", got, reason)
			}
			if o.Passed() != (reason == "") {
				t.Errorf("Passed is %v", o.Passed())
			}
		})
	}
}

func TestWhatASuiteLeavesBehindIsSaidAndEnded(t *testing.T) {
	if filepath.Separator == '\\' {
		t.Skip("process groups are Unix's")
	}
	t.Setenv(play, "leaves")
	o := stand(t).One(t.Context(), Run{Scenario: "x", Version: "2025-11-25"})
	if !strings.Contains(o.Problem, "left behind") {
		t.Errorf("the problem is %q", o.Problem)
	}
}

func stand(t *testing.T) *Suite {
	t.Helper()
	dir := t.TempDir()
	return &Suite{
		Suite: &peers.Suite{Node: os.Args[0], Script: "suite"}, Client: filepath.Join(dir, "client"), Output: dir,
	}
}

func TestJudge(t *testing.T) {
	good, bad := []Check{{Status: "SUCCESS"}}, []Check{{Status: "FAILURE"}}
	a, b, c := Run{Scenario: "a", Version: "1"}, Run{Scenario: "a", Version: "2"}, Run{Scenario: "c", Version: "1"}
	plan := []Run{a, b, c}
	for _, test := range []struct {
		name       string
		outcomes   []Outcome
		expected   []ExpectedFailure
		unexpected []Run
		stale      []string
	}{
		{name: "all pass", outcomes: []Outcome{{Run: a, Checks: good}}},
		{name: "a failure", outcomes: []Outcome{{Run: a, Checks: bad}}, unexpected: []Run{a}},
		{name: "known", outcomes: []Outcome{{Run: a, Checks: bad}}, expected: []ExpectedFailure{{Scenario: "a", Why: "w"}}},
		{
			name: "known at another version only", outcomes: []Outcome{{Run: a, Checks: bad}, {Run: b, Checks: bad}},
			expected: []ExpectedFailure{{Scenario: "a", Versions: []string{"2"}, Why: "w"}}, unexpected: []Run{a},
		},
		{
			name: "passes at one version", outcomes: []Outcome{{Run: a, Checks: good}, {Run: b, Checks: bad}},
			expected: []ExpectedFailure{{Scenario: "a", Why: "w"}}, stale: []string{"1/a passes"},
		},
		{
			name: "may pass, and may fail", outcomes: []Outcome{{Run: a, Checks: good}, {Run: b, Checks: bad}},
			expected: []ExpectedFailure{{Scenario: "a", Why: "w", PassesToo: "p"}},
		},
		{name: "not run now is not stale", expected: []ExpectedFailure{{Scenario: "c", Why: "w"}}},
		{name: "never run is", expected: []ExpectedFailure{{Scenario: "gone", Why: "w"}}, stale: []string{"gone is not run"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := Judge(plan, test.outcomes, test.expected)
			if !slices.Equal(j.Unexpected, test.unexpected) || !slices.Equal(j.Stale, test.stale) {
				t.Errorf("%+v", j)
			}
			if j.OK() != (test.unexpected == nil && test.stale == nil) {
				t.Errorf("OK is %v", j.OK())
			}
		})
	}
}

func TestScenariosThroughTheGatewayAreJudgedByTheNameOfTheirCase(t *testing.T) {
	c := GatewayCase{Upstream: "stdio", Era: messages.EraLegacy}
	run := Run{Scenario: "s", Version: "2026-07-28"}
	passed := Outcome{Run: run, Checks: []Check{{Status: "SUCCESS"}}}
	failed := Outcome{Run: run, Checks: []Check{{Status: "FAILURE"}}}
	may := ExpectedFailure{Scenario: "gateway/stdio-legacy/s", Why: "w"}
	both := may
	both.PassesToo = "p"
	for _, test := range []struct {
		name    string
		outcome Outcome
		entry   ExpectedFailure
		want    string
	}{
		{"passes", passed, ExpectedFailure{}, ""},
		{"fails", failed, ExpectedFailure{}, "failed and may not: gateway/stdio-legacy/s"},
		{"known", failed, may, ""},
		{"stale", passed, may, "expected-failures.yaml is stale: gateway/stdio-legacy/s passes"},
		{"may pass", passed, both, ""},
		{"may fail", failed, both, ""},
		{"of the client", failed, ExpectedFailure{Scenario: "s", Why: "w"}, "failed and may not: gateway/stdio-legacy/s"},
	} {
		problems := c.JudgeOutcome(test.outcome, []ExpectedFailure{test.entry})
		if first := strings.Join(problems[:min(1, len(problems))], ""); first != test.want {
			t.Errorf("%s: %q", test.name, problems)
		}
	}
}

func TestTheListOfExpectedFailuresCanBeRead(t *testing.T) {
	if _, err := ReadExpected(); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"- scenario: a":                          "has no reason",
		"- why: b":                               "names no scenario",
		"- scenario: a\n  because: b":            "because",
		"- scenario: a\n  why: b\n":              "",
		"- {scenario: a, passesToo: b}":          "has no reason",
		"":                                       "",
		"# nothing is expected to fail\n":        "",
		"- {scenario: a, versions: [1], why: b}": "",
	} {
		_, err := parseExpected([]byte(text))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}

func TestThePlanIsTheRequirementSetsAndWhatIsExtra(t *testing.T) {
	folder := t.TempDir()
	for _, version := range Sets {
		text := "server: [s]\nclient:\n  - tools_call\nnot_scored:\n" +
			"  - {scenario: tasks, leg: server, reason: extension, note: n}\n" +
			"  - {scenario: auth/dpop, leg: client, reason: extension}\n"
		if err := os.WriteFile(filepath.Join(folder, version+".yaml"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	plan, err := Plan(folder)
	if err != nil {
		t.Fatal(err)
	}
	want := []Run{
		{"tools_call", "2025-11-25", ""}, {"auth/dpop", "2025-11-25", "extension"},
		{"tools_call", "2026-07-28", ""}, {"auth/dpop", "2026-07-28", "extension"},
	}
	if !slices.Equal(plan, append(want, Extra...)) {
		t.Errorf("the plan is %v", plan)
	}
	unplanned, gone := Missing(plan, []string{"tools_call", "new", "sep-2640-client-no-prefetch"})
	if !slices.Equal(unplanned, []string{"new"}) || len(gone) != len(NotRun)-1 {
		t.Errorf("unplanned %v, gone %v", unplanned, gone)
	}
}

func TestTheScenariosOfAList(t *testing.T) {
	got := scenariosIn("Client scenarios (test against a client):\n  - initialize [2025-06-18]\n  - auth/x [extension]\n")
	if !slices.Equal(got, []string{"initialize", "auth/x"}) {
		t.Errorf("%v", got)
	}
}

func ExampleReport() {
	check := func(status string) Check {
		return Check{Name: "Header", Status: status, ErrorMessage: "the header\nis missing"}
	}
	Report(os.Stdout, []Outcome{
		{Run: Run{"tools_call", "2025-11-25", ""}, Checks: []Check{check("SUCCESS")}, Took: time.Second},
		{Run: Run{"auth/scope", "2025-11-25", ""}, Checks: []Check{check("FAILURE")}, Took: time.Second},
		{Run: Run{"sse-retry", "2025-11-25", ""}, Checks: []Check{check("FAILURE")}, Folder: "out"},
		{Run: Run{"auth/dpop", "2026-07-28", "extension"}, Checks: []Check{check("SUCCESS")}},
	}, []ExpectedFailure{{Scenario: "auth/scope", Why: "waits for authorization"}, {Scenario: "auth/dpop", Why: "not built"}})
	// Output:
	// required by 2025-11-25: 1 of 3 pass, 1 FAIL, 1 known to fail
	//   pass   tools_call  1/1  1.0 s
	//   known  auth/scope  0/1  1.0 s
	//   FAIL   sse-retry   0/1  0.0 s
	//   2025-11-25/sse-retry, see out
	//     failure Header: the header is missing
	//   1 known to fail: waits for authorization
	//
	// not scored: 1 of 1 pass
	//   STALE  auth/dpop  2026-07-28 extension  1/1  0.0 s
}
