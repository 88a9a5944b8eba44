package chaos

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/test/chaos/campaign"
	"github.com/mcpvisor/mcpvisor/test/chaos/invariant"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// TestAReplayKeepsItsScenario checks that the report of a replay does not replace the folder in which its scenario lies.
func TestAReplayKeepsItsScenario(t *testing.T) {
	t.Chdir(t.TempDir())
	dir := filepath.Join(chaosFolder, "seed-2")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	plan := scenario.Plan{Seed: 2, Scenario: scenario.Scenario{Name: "seed-2"}}
	for name, want := range map[string]string{
		"":                                  dir, // a random day
		"flapping":                          dir,
		"day.yaml":                          dir,
		filepath.Join(dir, "scenario.yaml"): dir + "-again",
		filepath.Join(".", dir, "s.yaml"):   dir + "-again",
		filepath.Join("none", "some.yaml"):  dir,
	} {
		s := simulation{name: name}
		if got := s.reportFolder(plan); got != want {
			t.Errorf("the report of %q goes to %q, want %q", name, got, want)
		}
	}
}

// TestTheFirstVerdictStays checks that a run of the report in which nothing was found does not take away the words of the run that failed.
func TestTheFirstVerdictStays(t *testing.T) {
	first := invariant.Verdict{ID: "I21", Answer: invariant.Violated, Why: "Call c1 was passed over."}
	second := invariant.Verdict{ID: "I21", Answer: invariant.Violated, Why: "Call c2 was passed over."}
	holds := invariant.Verdict{ID: "I21", Answer: invariant.Holds}
	other := invariant.Verdict{ID: "I3", Answer: invariant.Violated, Why: "Call c3 ran twice."}
	if v, notShown := reportedVerdict(first, []invariant.Verdict{other, second}); v.Why != second.Why || notShown {
		t.Errorf("the report shows it with other words: %q, %v", v.Why, notShown)
	}
	if v, notShown := reportedVerdict(first, []invariant.Verdict{other, holds}); v.Why != first.Why || !notShown {
		t.Errorf("the report does not show it: %q, %v", v.Why, notShown)
	}
}

// roleVariable says as which worker this program was started again.
const roleVariable = "MCPVISOR_CHAOS_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "dies without a word":
		_, _ = bufio.NewReader(os.Stdin).ReadBytes('\n')
		os.Exit(9)
	case "violates":
		for in := bufio.NewReader(os.Stdin); ; {
			line, err := in.ReadBytes('\n')
			if err != nil {
				os.Exit(0)
			}
			var task campaign.Task
			_ = json.Unmarshal(line, &task)
			fmt.Printf(`{"seed":%d,"verdicts":[{"id":"I3","answer":"violated","server":"s1","at":2000000000,"why":"It ran twice.","looked":1}]}`+"\n", task.Seed)
		}
	case "hangs before the run":
		_, _ = bufio.NewReader(os.Stdin).ReadBytes('\n')
		fmt.Println(`{"seed":3,"verdicts":[{"id":"hung","answer":"violated","why":"The scenario is made, and that does not come to its end.","looked":1}]}`)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestAViolationIsPrintedAtOnce checks that a campaign that is interrupted has said which seeds failed until then.
func TestAViolationIsPrintedAtOnce(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	said := &cancelingWriter{cancel: func() { cancel(exit.ErrInterrupted) }}
	o := &cli.Options{Streams: terminal.Streams{Out: io.Discard, Err: said}}
	s := simulation{options: o, flags: chaosSimFlags{seed: 3, seeds: 100, servers: 2, out: t.TempDir(), noShrink: true}, task: campaign.Task{Servers: 2, Duration: time.Minute}}
	s.pool = campaign.NewPool(func() *exec.Cmd {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), roleVariable+"=violates")
		return cmd
	}, 1)
	defer s.pool.Close()
	var failed *exit.Error
	if err := s.runCampaign(ctx); !errors.As(err, &failed) || failed.Code != exit.Interrupted {
		t.Errorf("the campaign ended with %v", err)
	}
	if want := "mcpvisor: seed 3: I3 on s1 at 2s: It ran twice.\n"; !strings.Contains(said.text.String(), want) {
		t.Errorf("until the interrupt it was said: %q, want %q", said.text.String(), want)
	}
}

// cancelingWriter keeps what is written to it, and ends the context of the campaign with the first line that tells of a seed.
type cancelingWriter struct {
	text   bytes.Buffer
	cancel func()
}

func (w *cancelingWriter) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("seed")) {
		w.cancel()
	}
	return w.text.Write(p)
}

// TestARunWithoutAHistoryIsReported checks that a run whose process is killed, or that hangs outside of the run itself, takes away neither
// the findings of a campaign nor those of a single run.
func TestARunWithoutAHistoryIsReported(t *testing.T) {
	for role, want := range map[string]string{
		"dies without a word":  "the process of the run has died (exit status 9)",
		"hangs before the run": "The scenario is made, and that does not come to its end.",
	} {
		t.Run(role, func(t *testing.T) {
			out := t.TempDir()
			var printed, said bytes.Buffer
			o := &cli.Options{Streams: terminal.Streams{Out: &printed, Err: &said}}
			s := simulation{options: o, flags: chaosSimFlags{seed: 3, seeds: 2, servers: 2, out: out, noShrink: true}, task: campaign.Task{Servers: 2, Duration: time.Minute}}
			s.pool = campaign.NewPool(func() *exec.Cmd {
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), roleVariable+"="+role)
				return cmd
			}, 1)
			defer s.pool.Close()
			var failed *exit.Error
			if err := s.runCampaign(t.Context()); !errors.As(err, &failed) || failed.Code != exit.Failed {
				t.Errorf("the campaign ended with %v", err)
			}
			text := filepath.Join(out, "seed-3", crashText)
			if content, err := os.ReadFile(text); err != nil || !strings.Contains(string(content), want) {
				t.Errorf("%q, %v", content, err)
			}
			if hangs := strings.Contains(role, "hangs"); strings.Contains(said.String(), "mcpvisor: seed 3 hangs: "+want) != hangs {
				t.Errorf("at once it was said: %s", said.String())
			}
			if !strings.Contains(printed.String(), "report: "+text) || !strings.Contains(printed.String(), want) {
				t.Errorf("%s", printed.String())
			}
		})
	}
}

// TestShrinkBound: on a machine that has time a search ends after 30 s, and on a busy one, where a run takes several seconds, it gets more.
func TestShrinkBound(t *testing.T) {
	for took, want := range map[time.Duration]time.Duration{
		0: 30 * time.Second, 500 * time.Millisecond: 30 * time.Second, 3 * time.Second: 45 * time.Second, time.Minute: time.Minute,
	} {
		if got := shrinkBound(took); got != want {
			t.Errorf("a run of %s may be made smaller for %s, want %s", took, got, want)
		}
	}
}
