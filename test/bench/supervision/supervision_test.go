package supervision_test

import (
	"context"
	"io"
	"testing"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/bench/row"
	"github.com/mcpvisor/mcpvisor/test/bench/supervision"
)

// contenders are both ways of a call.
func contenders(tb testing.TB) (bare, whole func(context.Context) error) {
	b, err := supervision.OpenSession(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	w, err := supervision.OpenFacade(tb.Context(), supervisor.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := b.Close(context.Background()); err != nil {
			tb.Error(err)
		}
		if err := w.Close(); err != nil {
			tb.Error(err)
		}
	})
	return b.Call, w.Call
}

// What a call allocates: the session two things, its message and what comes back; everything around it three more, the
// arguments in an interface, the clocks of the call, and the result. Who adds one has a reason, and says it here.
const (
	bareAllocations  = 2
	wholeAllocations = bareAllocations + 3
	// The record of a call: the context that follows it, and the text of the arguments' hash. The writer's goroutine, whose
	// allocations are counted too, makes some two dozen for each 10 ms.
	auditedAllocations = wholeAllocations + 2
)

func TestWhatACallAllocates(t *testing.T) {
	bare, whole := contenders(t)
	audited, err := supervision.OpenFacade(t.Context(), supervisor.Config{Audit: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	defer audited.Close()
	ctx, cancel := context.WithCancel(t.Context()) // as every real call has: something to wait for
	defer cancel()
	for _, c := range []struct {
		name string
		call func(context.Context) error
		most float64
	}{{"a bare session", bare, bareAllocations}, {"the facade", whole, wholeAllocations}, {"the facade, audited", audited.Call, auditedAllocations}} {
		if n := testing.AllocsPerRun(200, func() {
			if err := c.call(ctx); err != nil {
				t.Fatal(err)
			}
		}); n > c.most {
			t.Errorf("a call through %s makes %v allocations, not %v", c.name, n, c.most)
		}
	}
}

// TestNamesAndGatesAreFree: finding a tool by its name, and being admitted to its server, takes no allocation.
func TestNamesAndGatesAreFree(t *testing.T) {
	w, err := supervision.OpenFacade(t.Context(), supervisor.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	b, err := supervision.OpenSession(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(context.Background())
	if n := testing.AllocsPerRun(200, func() {
		if e, ok := w.Manager.Tools().Lookup(supervision.Tool); !ok || e.Route == nil {
			t.Fatal("the tool is not there")
		}
		if _, ok := w.Manager.Tools().LookupTool("s", "nothing"); !ok {
			t.Fatal("the tool is not there")
		}
		if err := b.EnterGate(); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestTheSectionIsMeasured: every row has a value, and the ones with a target say so.
func TestTheSectionIsMeasured(t *testing.T) {
	section := supervision.Section()
	report, err := section.Run(t.Context(), row.Options{Rounds: 2, For: 1e6, Progress: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	targets := 0
	for _, r := range report.Rows {
		if r.Target > 0 {
			targets++
		}
		if r.Case == "" || r.Unit == "" {
			t.Errorf("a row without a name or a unit: %+v", r)
		}
	}
	if targets != 2 || report.Text == "" || report.Samples == "" {
		t.Errorf("%d targets, %q, %q", targets, report.Text, report.Samples)
	}
}

func BenchmarkCall(b *testing.B) {
	bare, whole := contenders(b)
	for name, call := range map[string]func(context.Context) error{"bare": bare, "whole": whole} {
		b.Run(name, func(b *testing.B) {
			ctx, cancel := context.WithCancel(b.Context())
			defer cancel()
			b.ReportAllocs()
			for b.Loop() {
				if err := call(ctx); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
