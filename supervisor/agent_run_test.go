package supervisor_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/supervisortest"
)

// TestTheLoopOfAnAgentIsShort: the page of the library says how long it is, from its for to the end of it.
func TestTheLoopOfAnAgentIsShort(t *testing.T) {
	source, err := os.ReadFile("example_again_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(source), "\n\tfor {\n")
	loop, _, _ := strings.Cut(rest, "\n\t}\n")
	if n := strings.Count(loop, "\n") + 3; n > 12 {
		t.Errorf("%d lines", n)
	}
}

// TestTheExamplesNeedOneImport: what the examples of the library page need of the vocabulary, package supervisor has.
func TestTheExamplesNeedOneImport(t *testing.T) {
	for _, file := range []string{"example_howto_test.go", "example_again_test.go"} {
		source, err := os.ReadFile(file)
		if err != nil || strings.Contains(string(source), "mcpvisor/messages\"") {
			t.Errorf("%s imports package messages: %v", file, err)
		}
	}
}

// TestNoCallOfAnAgentIsLost is a run of an agent with the default policy, and with callAgain: one server crashes two seconds after each
// time it was connected. No call ends without a reason, none runs twice, and none gives up while it still had time and the
// server was to come back.
func TestNoCallOfAnAgentIsLost(t *testing.T) {
	for _, wait := range []time.Duration{0, time.Minute} {
		t.Run("CallWait "+wait.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				ran := map[string]int{}
				var lastUp time.Time // when a call was last answered by the crashing server
				tool := supervisortest.Func("work", func(ctx context.Context, call supervisortest.Call) (string, error) {
					mu.Lock()
					ran[string(call.Arguments)]++
					mu.Unlock()
					select {
					case <-time.After(300 * time.Millisecond):
						return "done", nil
					case <-ctx.Done():
						return "", ctx.Err()
					}
				})
				crashing, steady := supervisortest.NewServer("crashing", tool), supervisortest.NewServer("steady", tool)
				m := supervisortest.StartConfig(t, supervisor.Config{CallWait: wait}, crashing, steady)
				stop := make(chan struct{})
				defer close(stop)
				go func() {
					for {
						select {
						case <-time.After(2 * time.Second):
							crashing.Crash()
						case <-stop:
							return
						}
					}
				}()
				// How each call ended: its deadline, its end, and its error.
				type end struct {
					server       string
					deadline, at time.Time
					err          error
				}
				var ends []end
				var callers sync.WaitGroup
				for conversation := range 50 {
					callers.Go(func() {
						for turn := range 20 {
							time.Sleep(time.Duration(1000+37*conversation) * time.Millisecond) // the model thinks
							server := []string{"crashing", "steady"}[turn%2]
							ctx, cancel := context.WithTimeout(supervisor.WithCaller(t.Context(), fmt.Sprint(conversation)), 12*time.Minute)
							deadline, _ := ctx.Deadline()
							args := fmt.Sprintf(`{"call":"%d of %d"}`, turn, conversation)
							_, err := callAgain(ctx, m, "mcp__"+server+"__work", []byte(args))
							cancel()
							mu.Lock()
							ends = append(ends, end{server, deadline, time.Now(), err})
							if server == "crashing" && err == nil {
								lastUp = time.Now()
							}
							mu.Unlock()
						}
					})
				}
				callers.Wait()
				lost, repeated, early, unknown := 0, 0, 0, 0
				for _, n := range ran {
					repeated += max(n-1, 0)
				}
				for _, e := range ends {
					var own *supervisor.Error
					switch {
					case e.err == nil:
					case !errors.As(e.err, &own) || own.Text == "" || own.Server != e.server || own.Tool != "work" || own.Class == messages.ClassNone:
						lost++
						t.Logf("without a reason: %v", e.err)
					case errors.Is(e.err, supervisor.ErrOutcomeUnknown):
						unknown++ // its connection ended while it ran
					case e.at.Before(e.deadline) && lastUp.After(e.at):
						early++
						t.Logf("early: %v", e.err)
					}
				}
				if lost+repeated+early != 0 || len(ends) != 1000 || unknown == 0 || unknown > 900 {
					t.Errorf("%d calls: %d without a reason, %d repeated, %d ended early, %d unknown", len(ends), lost, repeated, early, unknown)
				}
				t.Logf("%d unknown of %d, the server was connected %d times", unknown, len(ends), crashing.Connections())
			})
		})
	}
}
