package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/servers"
)

// protocolViolation is one way to break the protocol, and what it costs.
type protocolViolation struct {
	parameters []string
	// call is what becomes of a call of echo: "answered", or the outcome and the class of its error. Empty if that depends
	// on the moment: then only its end counts, and that it has a reason.
	call string
	// words are in that reason.
	words []string
	// survives says that the connection outlives the call. Otherwise words are in the server's history.
	survives bool
}

const answeredText = "answered"

func unknownText(class messages.Class) string {
	return string(messages.OutcomeUnknown) + " " + string(class)
}

// protocolViolations are the fixtures that can be connected and then break the protocol. Those that cannot be connected
// are brokenServers'.
func protocolViolations() map[string]protocolViolation {
	timeout, protocol, exited := unknownText(messages.ClassTimeout), unknownText(messages.ClassProtocol), unknownText(messages.ClassExited)
	return map[string]protocolViolation{
		"noise":            {call: answeredText, survives: true},
		"odd-lines":        {call: answeredText, survives: true},
		"odd-answers":      {call: answeredText, survives: true},
		"stderr-flood":     {call: answeredText, survives: true},
		"hostile-text":     {call: answeredText, survives: true},
		"bad-schemas":      {call: answeredText, survives: true},
		"duplicates":       {call: answeredText, survives: true},
		"list-storm":       {call: answeredText, survives: true},
		"list-feedback":    {call: answeredText, survives: true},
		"hangs-on-call":    {call: timeout, words: []string{"deadline"}, survives: true},
		"progress-forever": {call: timeout, survives: true},
		"half-line":        {call: exited, words: []string{"exit status 1"}},
		"dies-mid-call":    {call: exited, words: []string{"exit status 1"}},
		"answers-and-dies": {call: answeredText, words: []string{"exit status 1"}},
		"endless-line":     {words: []string{"line"}},
		"flood":            {words: []string{"standard output"}},
		"closes-stdout":    {words: []string{"output"}},
		"stops-reading":    {},

		"modern-result-type":        {call: protocol, words: []string{"surprise"}, survives: true},
		"modern-no-result-type":     {call: answeredText, survives: true},
		"modern-input-for-ever":     {call: timeout, survives: true},
		"modern-task-for-ever":      {call: timeout, words: []string{"task"}, survives: true},
		"modern-unnamed-changes":    {call: answeredText, survives: true},
		"modern-foreign-changes":    {call: answeredText, survives: true},
		"modern-no-acknowledgement": {call: answeredText, survives: true},
		"modern-listen-flaps":       {call: answeredText, survives: true},
		"modern-listen-refused":     {call: answeredText, survives: true},
		"modern-dies-on-listen":     {words: []string{"exit status 1"}},
		"modern-asks":               {call: answeredText, survives: true},
		"modern-odd-answers":        {call: answeredText, survives: true},
		"modern-cancels":            {call: answeredText, survives: true},
		"modern-odd-progress":       {call: answeredText, survives: true},
		"modern-odd-discovery":      {call: answeredText, survives: true},
		"modern-forgets-version":    {call: "rejected rejected", words: []string{"unsupported protocol version"}, survives: true},
	}
}

// "A server that violates the protocol in any way costs at most its own call or its own connection, with a reason": each
// stands beside a server of either era that behaves, and those never notice.
func TestViolationsCostTheirOwnCallOrConnectionAndNobodyElses(t *testing.T) {
	checkLeaks(t)
	healthy := map[string]fleetServer{
		"healthy":        {spec: fixtureSpec("good"), tool: "echo", args: object{"text": "hi"}, answer: "hi"},
		"healthy-modern": {spec: fixtureSpec("modern"), tool: "echo", args: object{"text": "hi"}, answer: "hi"},
	}
	all := protocolViolations()
	all["modern-input-for-ever-of-roots"] = protocolViolation{parameters: []string{"with=roots"},
		call: unknownText(messages.ClassProtocol), words: []string{"more than 32 times"}, survives: true}
	specs := specsOf(healthy)
	for name, v := range all {
		kind := strings.TrimSuffix(name, "-of-roots")
		specs[name] = changeSpec(fixtureSpec(kind, v.parameters...), func(s *supervisor.Spec) {
			s.StopGrace = toDuration(0.5)
			if v.call == "" || v.call == unknownText(messages.ClassTimeout) { // the end of any other call is not its deadline's
				s.CallTimeout, s.MaxCallTimeout = toDuration(4), toDuration(8)
			}
			if kind == "endless-line" {
				s.MaxMessage = 1 << 20 // of 16 MiB, 2 GiB are read before the line is said to have no end
			}
		})
	}
	m := startManager(t, supervisor.Config{
		Servers: specs,
		Roots:   func(context.Context, string) ([]supervisor.Root, error) { return nil, nil },
	})
	awaitConnected(t, m, slices.Collect(maps.Keys(healthy))...)
	before := map[string]supervisor.Status{}
	for name := range healthy {
		before[name] = statusOf(t, m, name)
	}
	stop := startCallers(t, m, healthy)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) { all[name].checkViolation(t, m, name) })
	}
	calls := stop()
	for name := range healthy {
		if st := statusOf(t, m, name); st.Status != messages.Connected || st.Restarts != 0 ||
			st.Epoch != before[name].Epoch || st.Noise != 0 {
			t.Errorf("%s noticed: %s, %d restarts, epoch %d after %d", name, st.Status, st.Restarts, st.Epoch,
				before[name].Epoch)
		}
	}
	t.Logf("%d calls of healthy servers beside %d violating ones, worst %v", len(calls), len(all), calls[len(calls)-1])
}

func (v protocolViolation) checkViolation(t *testing.T, m *supervisor.Manager, name string) {
	if v.survives || v.call != "" {
		awaitConnected(t, m, name)
	}
	res, err := m.CallServerTool(testContext(t, bound), name, "echo", object{"text": name})
	got := answeredText
	var e *supervisor.Error
	switch {
	case err == nil && (res.IsError || res.Text() != name && v.call == answeredText):
		t.Errorf("it answers %s", res.Raw)
	case err == nil:
	case !errors.As(err, &e):
		t.Fatalf("%T: %v", err, err)
	default:
		got = fmt.Sprintf("%s %s", e.Outcome, e.Class)
		if invalid := readableError(err.Error()); invalid != nil {
			t.Errorf("%v: %v", invalid, err)
		}
		if !containsWords(err.Error(), name) {
			t.Errorf("it does not say whose: %v", err)
		}
	}
	if v.call != "" && got != v.call {
		t.Errorf("a call ends %s, want %s: %v", got, v.call, err)
	}
	if err != nil && v.survives && !containsWords(err.Error(), v.words...) {
		t.Errorf("its reason does not say %q: %v", v.words, err)
	}
	if !v.survives {
		var history []supervisor.HistoryEntry
		if !isEventually(bound, func() bool {
			history, err = m.History(name)
			return err == nil && (len(v.words) == 0 || slices.ContainsFunc(history, func(h supervisor.HistoryEntry) bool {
				return containsWords(h.Text, v.words...)
			}))
		}) {
			t.Errorf("its history never says why: %v, %+v, %+v", err, history, statusOf(t, m, name))
		}
		return
	}
	if st := statusOf(t, m, name); st.Status != messages.Connected || st.Restarts != 0 || st.Attempts != 0 {
		t.Errorf("the connection is %s (%s), %d restarts, %d attempts", st.Status, st.Error, st.Restarts, st.Attempts)
	}
}

// A client of the modern era writes no response, whatever a server sends.
//
// 2026-07-28, stdio: "the client MUST NOT write JSON-RPC responses to the server".
func TestViolationsNoAnswerToAModernServersOwnRequests(t *testing.T) {
	checkLeaks(t)
	m := startManager(t, supervisor.Config{
		Servers: map[string]supervisor.Spec{"asks": fixtureSpec("modern-asks")},
		Elicit: func(context.Context, supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
			t.Error("the person was asked")
			return supervisor.ElicitResult{Action: messages.ElicitDecline}, nil
		},
		Roots: func(context.Context, string) ([]supervisor.Root, error) {
			t.Error("the roots were asked for")
			return nil, nil
		},
	})
	awaitConnected(t, m, "asks")
	for range 3 {
		checkText(t, m, "asks", "echo", object{"text": "x"}, "x")
	}
	checkText(t, m, "asks", "heard", object{"name": "answers"}, "0")
}

// A subscription that a server ends at once is asked for again, in growing pauses, and not as fast as it ends.
func TestViolationsAFlappingSubscriptionIsNotFollowedBlindly(t *testing.T) {
	checkLeaks(t)
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{"flaps": fixtureSpec("modern-listen-flaps")}})
	awaitConnected(t, m, "flaps")
	eventually(t, "it is asked again", func() bool {
		return mustCall(t, m, "flaps", "heard", object{"name": "listens"}).Text() != "1"
	})
	for range 50 { // what a server does on its subscription costs no call
		checkText(t, m, "flaps", "echo", object{"text": "x"}, "x")
	}
	if n := mustCall(t, m, "flaps", "heard", object{"name": "listens"}).Text(); len(n) > 1 {
		t.Errorf("%s subscriptions in a moment", n)
	}
}

// Every fixture is judged by a test: a new one that is not would be a server without any test.
func TestViolationsEveryKindOfTheZooIsJudged(t *testing.T) {
	judged := protocolViolations()
	ill := map[string]bool{}
	for _, kind := range []string{
		// by the eras' tests
		"silent-on-probe", "deaf-before-initialize", "closes-on-probe", "odd-on-probe", "dies-on-probe", "slow-start",
		// by brokenServers
		"silent", "exits-at-once", "grandchild", "wrong-version", "refuses-initialize", "no-list", "refuses-list",
		"not-a-list", "cursor-loop",
		// by the tests of misbehaving servers, of lists and of processes
		"huge-line", "late-answers", "long-names", "bad-results", "exits-after-list", "ignores-signals", "empty-cursor",
		"changes-while-listing", "crash-after", "ignores-eof", "own-session", "launcher", "endless-pages",
		// by chaos check and chaos score, which they are made for, or by the tests of what else is made for them
		"agrees", "blocks", "dies-of-nonsense", "dies-of-second-initialize", "drops-while-busy", "echoes-version", "hints",
		"ignores", "short-lines", "shuffles", "starts-once", "cheap",
		// by the tests of pins
		"rug-pull",
		// who behave
		"good", "asks", "offers", "modern", "both-eras",
	} {
		ill[kind] = true
	}
	for _, k := range servers.Kinds() {
		if _, ok := judged[k.Name]; !ok && !ill[k.Name] {
			t.Errorf("%s (%s) is judged by no test", k.Name, k.Does)
		}
	}
}
