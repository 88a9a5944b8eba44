package supervisor_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/test/seeds"
)

// trail is the writer of an audit log; while it is full it takes a part of a line and no more.
type trail struct {
	full atomic.Bool
	mu   sync.Mutex
	data bytes.Buffer
}

func (w *trail) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.full.Load() {
		w.data.Write(p[:5])
		return 5, syscall.ENOSPC
	}
	return w.data.Write(p)
}

func (w *trail) records(t *testing.T) (all []audit.Record) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := audit.Read(bytes.NewReader(w.data.Bytes()), func(r audit.Record) bool {
		all = append(all, r)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func ofKind(all []audit.Record, kind audit.Kind) (some []audit.Record) {
	for _, r := range all {
		if r.Kind == kind {
			some = append(some, r)
		}
	}
	return some
}

// TestAuditSurvivesAFullDisk: of many calls each has its line or is counted as lost where it is missing, whatever the writer
// does meanwhile, and every call has its result. The flag -calls says how many; make audited makes 100,000.
func TestAuditSurvivesAFullDisk(t *testing.T) {
	seeds.Shows(t, "002.9.audit")
	const callers = 20
	calls := *auditedCalls / callers * callers
	w := &trail{}
	// Far more calls are made while the disk is full than records can wait.
	m := start(t, supervisor.Config{Audit: w, AuditOptions: audit.Options{MaxRecords: calls / 20}},
		map[string]*fake{"a": newFake("get")})
	settled(t, m)
	var made atomic.Int64
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for range calls / callers {
				switch int(made.Add(1)) {
				case calls / 3:
					w.full.Store(true)
				case calls * 2 / 3:
					w.full.Store(false)
				}
				if _, err := m.CallTool(t.Context(), "mcp__a__get", json.RawMessage(`{"n":1}`)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, next, written, lost := w.records(t), uint64(1), uint64(0), uint64(0)
	for _, r := range all {
		if r.Lost != nil {
			if r.Lost.From != next || r.Lost.To-r.Lost.From+1 != r.Lost.Records {
				t.Fatalf("number %d is next: %+v", next, r.Lost)
			}
			lost += r.Lost.Kinds[audit.KindCall]
			next = r.Lost.To + 1
		}
		if r.Seq != next {
			t.Fatalf("number %d is next, not %d", next, r.Seq)
		}
		next++
		if r.Kind == audit.KindCall {
			written++
			if r.Server != "a" || r.Tool != "get" || r.Outcome != messages.OutcomeResult || r.Epoch == 0 || r.Attempts != 1 ||
				r.ArgsSHA256 == "" || r.Args != nil {
				t.Fatalf("%+v", r)
			}
		}
	}
	st := m.AuditStats()
	if written+lost != uint64(calls) || lost == 0 || st.Waiting != 0 || st.Added != next-1 || st.Kinds[audit.KindCall] != lost {
		t.Errorf("%d written, %d lost; %+v", written, lost, st)
	}
	if first, last := all[0], all[len(all)-1]; first.Kind != audit.KindStart || last.Kind != audit.KindEnd {
		t.Errorf("from %s to %s", first.Kind, last.Kind)
	}
}

// TestAuditTellsEverything: calls that ran, failed, were denied, asked about and unknown; answers, phases, changes; who and
// which way.
func TestAuditTellsEverything(t *testing.T) {
	seeds.Shows(t, "002.9.audit")
	synctest.Test(t, func(t *testing.T) {
		w, f := &trail{}, newFake("get", "write", "drop", "fail")
		f.onCall = func(_ context.Context, tool string, _ json.RawMessage) (string, error) {
			if tool == "fail" {
				return "", errors.New("no")
			}
			return `{"content":[]}`, nil
		}
		r := ownRules(t, "deny mcp__a__drop | ask mcp__a__write | deny a:get(path:/etc/*)")
		answers := []supervisor.AskAnswer{supervisor.AskNo, supervisor.AskSession}
		m := start(t, supervisor.Config{Audit: w, Access: r, AuditProject: "/work",
			Ask: func(context.Context, supervisor.AskRequest) (supervisor.AskAnswer, error) {
				time.Sleep(time.Second)
				word := answers[0]
				answers = answers[1:]
				return word, nil
			}}, map[string]*fake{"a": f})
		settled(t, m)
		ctx := supervisor.WithCaller(t.Context(), "agent 7")
		call := func(tool, args string) { _, _ = m.CallTool(ctx, "mcp__a__"+tool, json.RawMessage(args)) }
		call("get", `{"path":"/tmp/x"}`)
		call("get", `{"path":"/etc/x"}`)
		call("drop", `{}`)
		call("write", `{}`)
		call("write", `{}`)
		call("write", `{}`)
		call("fail", ``)
		call("nosuch", ``)
		_, _ = m.CallTool(ctx, "mcp__a__get", make(chan int))
		if err := m.Toggle(ctx, "a", false); err != nil {
			t.Error(err)
		}
		call("get", ``)
		if err := m.SetPermissions(ctx, access.Rules{}); err != nil {
			t.Error(err)
		}
		_ = m.Remove(ctx, "nobody")
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		all := w.records(t)
		var got []string
		for _, r := range all {
			words := []string{string(r.Kind), r.Server, r.Tool, string(r.Outcome), r.Decision, r.Rule, r.Answer, string(r.Was), string(r.Phase),
				r.Change, string(r.Class)}
			if r.Kind == audit.KindCall || r.Kind == audit.KindChange {
				words = append(words, r.Who+"/"+r.Via)
			}
			got = append(got, strings.Join(strings.Fields(strings.Join(words, " ")), " "))
		}
		want := `start
phase a pending connected
call a get result allow agent 7/program
call a get not-sent deny a:get(path:/etc/*) denied agent 7/program
call a drop not-sent deny mcp__a__drop denied agent 7/program
answer a write ask mcp__a__write no
call a write not-sent ask mcp__a__write no denied agent 7/program
answer a write ask mcp__a__write session
call a write result ask mcp__a__write session agent 7/program
call a write result ask mcp__a__write granted agent 7/program
call a fail unknown allow timeout agent 7/program
call mcp__a__nosuch not-sent invalid agent 7/program
call mcp__a__get not-sent invalid agent 7/program
change a disable agent 7/program
phase a connected disabled
call mcp__a__get not-sent invalid agent 7/program
approval permissions
change nobody remove invalid agent 7/program
end`
		text := strings.Join(got, "\n")
		// The change is told by who makes it, the phase by the server: either may be first.
		const change, phase = "change a disable agent 7/program", "phase a connected disabled"
		text = strings.Replace(text, phase+"\n"+change, change+"\n"+phase, 1)
		if text != want {
			t.Errorf("got\n%s\nwant\n%s", text, want)
		}
		if all[0].Project != "/work" || all[0].PID == 0 || all[0].Program == "" {
			t.Errorf("%+v", all[0])
		}
		for _, r := range ofKind(all, audit.KindAnswer) {
			if r.Millis != 1000 {
				t.Errorf("%+v", r)
			}
		}
	})
}

// TestAuditHoldsNobodyUp: with a writer that never returns calls go on, and Close ends within its bound.
func TestAuditHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		defer close(release)
		m := start(t, supervisor.Config{Audit: held{release}}, map[string]*fake{"a": newFake("get")})
		settled(t, m)
		begin := time.Now()
		for range 1000 {
			if _, err := m.CallTool(t.Context(), "mcp__a__get", nil); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(begin); took > 0 {
			t.Errorf("calls waited %v", took)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("Close took %v", took)
		}
		if st := m.AuditStats(); st.Written != 0 || st.Waiting < 1000 {
			t.Errorf("%+v", st)
		}
	})
}

// held is a writer that does not return before it is released.
type held struct{ release chan struct{} }

func (w held) Write(p []byte) (int, error) {
	<-w.release
	return len(p), nil
}

// TestAuditKeepsSecretsOut: what a server was given stands in no record, in whatever place it comes back.
func TestAuditKeepsSecretsOut(t *testing.T) {
	for _, mode := range []audit.Arguments{audit.Hash, audit.Redacted, audit.Full, audit.None} {
		synctest.Test(t, func(t *testing.T) {
			const secret = "hunter2hunter2"
			w, f := &trail{}, newFake("get")
			f.onCall = func(context.Context, string, json.RawMessage) (string, error) {
				return "", errors.New("I was given " + secret)
			}
			m := start(t, supervisor.Config{Audit: w, AuditOptions: audit.Options{Arguments: mode}}, map[string]*fake{"a": f})
			settled(t, m)
			spec := supervisor.Spec{Command: "x", Args: []string{"--token", secret}, Env: map[string]string{"PASSWORD": secret}}
			_ = m.Connect(t.Context(), "b", spec)
			_, _ = m.CallServerTool(t.Context(), "b", "get", map[string]any{"text": "say " + secret, "n": []string{secret}})
			if err := m.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(w.data.String(), secret) {
				t.Errorf("%s: %s", mode, w.data.String())
			}
		})
	}
}

// TestAuditOffCostsNothing: without a writer a call allocates what it did before there was a record. The detector of races empties
// a sync.Pool at random, therefore the means of many calls are compared, not whole numbers.
func TestAuditOffCostsNothing(t *testing.T) {
	allocations := func(cfg supervisor.Config) float64 {
		m := start(t, cfg, nil)
		defer m.Close(t.Context())
		return meanAllocations(func() { _, _ = m.CallTool(t.Context(), "mcp__a__get", nil) })
	}
	off, on := allocations(supervisor.Config{}), allocations(supervisor.Config{Audit: &trail{}})
	m := start(t, supervisor.Config{}, nil)
	defer m.Close(t.Context())
	direct := meanAllocations(func() { _, _ = m.RunDirectly(t.Context(), "mcp__a__get") })
	if math.Abs(off-direct) > 0.5 || on < off+0.5 {
		t.Errorf("%v allocations for a call without a record, %v below it, %v with one", off, direct, on)
	}
}

// meanAllocations is how often f allocates, in the mean of a thousand runs: the least of three, because what earlier tests left
// running allocates, too.
func meanAllocations(f func()) float64 {
	const runs = 1000
	least := math.Inf(1)
	for range 3 {
		least = min(least, testing.AllocsPerRun(1, func() {
			for range runs {
				f()
			}
		})/runs)
	}
	return least
}
