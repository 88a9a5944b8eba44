package ask

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// TestEachServerHasItsPlaces lets one server fill its places in the queue: a question of another server, and one about a call,
// still get theirs, and their turn.
func TestEachServerHasItsPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q promptQueue
		var mu sync.Mutex
		var order []string
		refused := 0
		step := make(chan struct{})
		var all sync.WaitGroup
		put := func(server string, kind promptKind) {
			all.Go(func() {
				end, err := q.waitTurn(t.Context(), server, kind)
				mu.Lock()
				if err != nil {
					if !errors.Is(err, messages.ErrNotShown) {
						t.Error(err)
					}
					refused++
					mu.Unlock()
					return
				}
				order = append(order, fmt.Sprint(server, kind))
				mu.Unlock()
				<-step
				end()
			})
			synctest.Wait()
		}
		for range 40 {
			put("greedy", serverPrompt)
		}
		put("late", serverPrompt)
		put("late", serverPrompt)
		put("greedy", callPrompt)
		if refused != 38 {
			t.Errorf("%d questions of one server were refused, want 38", refused)
		}
		close(step)
		all.Wait()
		if got := strings.Join(order, " "); got != "greedy0 greedy0 late0 greedy1 late0" {
			t.Errorf("the order was %s", got)
		}
		if len(q.taken)+len(q.waiting)+len(q.order)+q.takenByKind[0]+q.takenByKind[1] != 0 || q.busy {
			t.Errorf("places are left over: %+v", &q)
		}
	})
}

// TestAQuestionThatGivesUpItsPlace cancels a question that waits in the queue: the next one still gets its turn.
func TestAQuestionThatGivesUpItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q promptQueue
		end, err := q.waitTurn(t.Context(), "a", serverPrompt)
		if err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan error)
		go func() { _, err := q.waitTurn(ctx, "b", serverPrompt); gone <- err }()
		synctest.Wait()
		leave()
		if err := <-gone; !errors.Is(err, messages.ErrNotShown) {
			t.Errorf("%v", err)
		}
		end()
		if end, err = q.waitTurn(t.Context(), "c", serverPrompt); err != nil {
			t.Fatal(err)
		}
		end()
	})
}

// typed returns a conversation in which the person types these lines.
func typed(t *testing.T, words ...string) (*Conversation, *bytes.Buffer) {
	out := &bytes.Buffer{}
	l := &lineReader{in: strings.NewReader(strings.Join(words, "\n") + "\n")}
	return &Conversation{ctx: t.Context(), Lines: l, Out: out}, out
}

// TestLongArgumentsAreShownWhole checks that a question about a call says that its arguments are cut, and shows the rest on
// request.
func TestLongArgumentsAreShownWhole(t *testing.T) {
	args := `{"note":"` + strings.Repeat("x", 30_000) + `","amount":1000000}`
	ask := func(words ...string) (supervisor.AskAnswer, string) {
		talk, out := typed(t, words...)
		answer, err := talk.askPermission(supervisor.AskRequest{Server: "s", Tool: "pay", Arguments: json.RawMessage(args)}, false)
		if err != nil {
			t.Fatal(err)
		}
		return answer, out.String()
	}
	answer, text := ask("o")
	if answer != supervisor.AskOnce || !strings.Contains(text, "the first 2,000 of 30,028 characters") || strings.Contains(text, "amount") {
		t.Errorf("%s\n%.3000s", answer, text)
	}
	if answer, text = ask("m", "m", "n"); answer != supervisor.AskNo || !strings.Contains(text, `"amount":1000000`) {
		t.Errorf("%s: the rest is not shown", answer)
	}
}

// TestEqualCallsAreCounted checks that the question counts the equal calls that wait, and that a call which arrives while the
// person thinks is not answered with them.
func TestEqualCallsAreCounted(t *testing.T) {
	waiting := 5
	talk, out := typed(t, "e", "e")
	answer, err := talk.askPermission(supervisor.AskRequest{Server: "s", Tool: "pay", Count: func() int {
		waiting++
		return min(waiting, 7)
	}}, false)
	if err != nil || answer != supervisor.AskAll {
		t.Errorf("%v, %v", answer, err)
	}
	for _, want := range []string{"6 calls with these arguments wait", "More calls have come meanwhile", "[e]very one of the 7"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
}

// TestSamplingCommandsAreBounded starts many requests: two commands of one server and four in all run at a time, and the others
// wait.
func TestSamplingCommandsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r samplingSlots
		var mu sync.Mutex
		now, most, each := 0, 0, map[string]int{}
		var all sync.WaitGroup
		release := make(chan struct{})
		for i := range 60 {
			server := fmt.Sprint("s", i%3)
			all.Go(func() {
				end, err := r.takeSlot(t.Context(), server)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				now++
				each[server]++
				most = max(most, now)
				if each[server] > samplesPerServer {
					t.Errorf("%d commands run for %s", each[server], server)
				}
				mu.Unlock()
				<-release
				mu.Lock()
				now--
				each[server]--
				mu.Unlock()
				end()
			})
		}
		synctest.Wait()
		if now != samplesAtOnce {
			t.Errorf("%d commands run, want %d", now, samplesAtOnce)
		}
		close(release)
		all.Wait()
		if most != samplesAtOnce {
			t.Errorf("%d commands ran at once", most)
		}
	})
}

// yeses is a standard input of a person who types "y" again and again.
type yeses struct{}

func (yeses) Read(p []byte) (int, error) { return copy(p, "y\n"), nil }

// TestAYesIsForSoManyRequests checks that one yes allows samplesPerConsent requests, and that the next question names their
// number.
func TestAYesIsForSoManyRequests(t *testing.T) {
	var out bytes.Buffer
	d := NewPrompter(t.Context(), terminal.Streams{In: yeses{}, Err: &out}, &exit.Interrupts{})
	s := &sampler{prompter: d, command: []string{"model"}}
	ask := func() error {
		return s.requestConsent(t.Context(), messages.SampleRequest{Server: "s", Params: json.RawMessage(`{"messages":[]}`)})
	}
	for round := range 2 {
		if err := ask(); err != nil {
			t.Fatal(err)
		}
		for range samplesPerConsent - 1 {
			if err := ask(); err != nil {
				t.Fatal(err)
			}
		}
		if n := strings.Count(out.String(), "wants an answer of your model"); n != round+1 {
			t.Errorf("%d questions after %d requests", n, (round+1)*samplesPerConsent)
		}
	}
	if !strings.Contains(out.String(), "It was given 20 requests before.") {
		t.Errorf("%s", out.String())
	}
}

// TestWhatWasNotShownIsNoRefusal checks that a question which reached no person is an error of its own, and is reported on
// standard error once a minute.
func TestWhatWasNotShownIsNoRefusal(t *testing.T) {
	var out bytes.Buffer
	d := NewPrompter(t.Context(), terminal.Streams{In: strings.NewReader(""), Err: &out}, &exit.Interrupts{})
	for range 10 {
		if _, err := d.AnswerElicitation(t.Context(), messages.ElicitRequest{Server: "s", Mode: messages.ElicitForm}); !errors.Is(err, messages.ErrNotShown) {
			t.Fatalf("%v", err)
		}
	}
	if n := strings.Count(out.String(), "was not shown"); n != 1 {
		t.Errorf("said %d times in a minute:\n%s", n, out.String())
	}
}
