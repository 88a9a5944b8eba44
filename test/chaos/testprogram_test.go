package chaos_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos"
	"github.com/mcpvisor/mcpvisor/test/chaos/score"
)

// TestProgramOfMcpGo plays a few cases, combined by a seed, to the client of mcp-go as a program: this test binary.
func TestProgramOfMcpGo(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	t.Cleanup(func() {
		for _, name := range []string{"junit.xml", "score.html"} {
			if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !strings.Contains(string(b), "a lost session") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
	chaos.TestProgram(t, []string{self, "adapter"}, chaos.Only("^(an ordinary day|a lost session|failures of tools|odd lines)$"), chaos.Seed(3),
		chaos.JUnit(dir))
}

func TestScoreCasesHaveTheirReasons(t *testing.T) {
	cases := chaos.ScoreCases(score.Result{Name: "one", Cases: []score.CaseResult{
		{Name: "a", Points: []score.Point{{Must: "it ends", Seen: "never"}}, TookMs: 1500}, {Name: "b", Points: []score.Point{{Got: true}}},
	}})
	if len(cases) != 2 || cases[0].Failure != "it ends: never" || cases[1].Failure != "" || cases[0].Took.Seconds() != 1.5 {
		t.Errorf("%+v", cases)
	}
	if failed := chaos.ScoreCases(score.Result{Name: "x", Failed: "it does not start"}); len(failed) != 1 || failed[0].Failure != "it does not start" {
		t.Errorf("%+v", failed)
	}
}
