package restart_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
	"github.com/mcpvisor/mcpvisor/test/seeds"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// always draws the same number.
func always(x float64) func() float64 { return func() float64 { return x } }

const almostOne = 1 - 1e-12

// classes states for every class what follows. TestEveryClass compares it with the policy and with the vocabulary.
var classes = []struct {
	class            messages.Class
	retriedAtFirst   bool // before the spec has ever connected
	retriedLater     bool // after it has
	countedToParking bool
}{
	{messages.ClassNone, true, true, true},
	{messages.ClassConfig, false, false, false},
	{messages.ClassMissing, false, true, true},
	{messages.ClassUnauthorized, false, false, false},
	{messages.ClassForbidden, true, true, true},
	{messages.ClassUnsupported, false, false, false},
	{messages.ClassProtocol, true, true, true},
	{messages.ClassTimeout, true, true, true},
	{messages.ClassExited, true, true, true},
	{messages.ClassNetwork, true, true, true},
	{messages.ClassThrottled, true, true, true},
	{messages.ClassSession, true, true, true},
	{messages.ClassExhausted, true, true, false},
	{messages.ClassCanceled, false, false, false},
	{messages.ClassDenied, false, false, false},
	{messages.ClassInvalid, false, false, false},
	{messages.ClassRejected, true, true, true},
	{messages.ClassPanic, true, true, true},
	{"a class of a later version", true, true, true},
}

func TestEveryClass(t *testing.T) {
	p := restart.DefaultPolicy()
	stated := map[messages.Class]bool{}
	for _, c := range classes {
		stated[c.class] = true
		for _, kind := range messages.TransportKinds {
			for _, ever := range []bool{false, true} {
				want := c.retriedAtFirst && !ever || c.retriedLater && ever
				before := restart.Record{Attempts: 2, EverConnected: ever}
				after, d := p.Down(before, restart.Down{Kind: kind, Class: c.class}, start, always(0.5))
				if want != (d.Retry == messages.RetryAt) || want == d.At.IsZero() || want == (d.Retry == messages.RetryNever) {
					t.Errorf("%q on %s, connected before: %v: %+v", c.class, kind, ever, d)
				}
				if restart.Retries(c.class, ever) != want {
					t.Errorf("Retries(%q, %v) is not %v", c.class, ever, want)
				}
				if want && c.countedToParking != (after.Attempts == 3) || !want && after != before {
					t.Errorf("%q on %s, connected before: %v: %+v", c.class, kind, ever, after)
				}
			}
		}
	}
	for _, c := range messages.Classes {
		if !stated[c] {
			t.Errorf("class %q has no line in the table", c)
		}
	}
}

func TestIntervals(t *testing.T) {
	seeds.Shows(t, "004.nfr2.backoff")
	p := restart.DefaultPolicy()
	const s = time.Second
	for kind, want := range map[messages.TransportKind][]time.Duration{
		messages.Stdio:         {s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s},
		messages.HTTP:          {s / 2, s, 2 * s, 4 * s, 8 * s, 16 * s, 32 * s, 60 * s, 60 * s},
		messages.SSE:           {s / 2, s, 2 * s},
		messages.WebSocket:     {s / 2, s, 2 * s},
		messages.ClaudeAIProxy: {s / 2, s, 2 * s},
		messages.SDK:           {s / 2, s, 2 * s},
	} {
		for i, w := range want {
			if got := p.Interval(kind, i+1); got != w {
				t.Errorf("%s, failure %d: %v, want %v", kind, i+1, got, w)
			}
		}
	}
	if got := p.Interval(messages.Stdio, math.MaxInt); got != time.Minute {
		t.Errorf("after very many failures: %v", got)
	}
	if got := p.Interval(messages.Stdio, 0); got != s {
		t.Errorf("after none: %v", got)
	}
	p.Factor = 1
	if got := p.Interval(messages.Stdio, math.MaxInt); got != s {
		t.Errorf("with a factor of 1: %v", got)
	}
}

func TestDelays(t *testing.T) {
	p := restart.DefaultPolicy()
	type down = restart.Down
	parked := restart.Record{Attempts: 6, EverConnected: true, Parked: true}
	for _, c := range []struct {
		name      string
		record    restart.Record
		down      down
		retry     messages.Retry
		low, high time.Duration
	}{
		{"first failure, stdio", restart.Record{}, down{Kind: messages.Stdio, Class: messages.ClassExited},
			messages.RetryAt, 200 * time.Millisecond, time.Second},
		{"first failure, network", restart.Record{}, down{Kind: messages.HTTP, Class: messages.ClassNetwork},
			messages.RetryAt, 200 * time.Millisecond, 500 * time.Millisecond},
		{"third failure", restart.Record{Attempts: 2}, down{Kind: messages.Stdio, Class: messages.ClassTimeout},
			messages.RetryAt, 200 * time.Millisecond, 4 * time.Second},
		{"ninth failure, network", restart.Record{Attempts: 8}, down{Kind: messages.SSE, Class: messages.ClassNetwork},
			messages.RetryAt, 200 * time.Millisecond, time.Minute},
		{"after a minute of health", restart.Record{Attempts: 5, EverConnected: true},
			down{Kind: messages.Stdio, Class: messages.ClassExited, Connected: time.Minute}, messages.RetryAt, 0,
			500 * time.Millisecond},
		{"after not quite a minute", restart.Record{Attempts: 2, EverConnected: true},
			down{Kind: messages.Stdio, Class: messages.ClassExited, Connected: time.Minute - 1},
			messages.RetryAt, 200 * time.Millisecond, 4 * time.Second},
		{"the failure that parks", restart.Record{Attempts: 5}, down{Kind: messages.Stdio, Class: messages.ClassExited},
			messages.RetryParked, 270 * time.Second, 330 * time.Second},
		{"a failed probe", parked, down{Kind: messages.Stdio, Class: messages.ClassExited},
			messages.RetryParked, 270 * time.Second, 330 * time.Second},
		{"a probe that failed on our side", parked, down{Kind: messages.Stdio, Class: messages.ClassExhausted},
			messages.RetryParked, 270 * time.Second, 330 * time.Second},
		{"a probe that held", parked, down{Kind: messages.Stdio, Class: messages.ClassExited, Connected: time.Hour},
			messages.RetryAt, 0, 500 * time.Millisecond},
		{"Retry-After", restart.Record{}, down{Kind: messages.HTTP, Class: messages.ClassThrottled,
			RetryAfter: 20 * time.Second},
			messages.RetryAt, 20 * time.Second, 22 * time.Second},
		{"Retry-After, also shorter than the interval", restart.Record{Attempts: 8},
			down{Kind: messages.HTTP, Class: messages.ClassThrottled, RetryAfter: 2 * time.Second},
			messages.RetryAt, 2 * time.Second, 2200 * time.Millisecond},
		{"Retry-After of a healthy server", restart.Record{EverConnected: true},
			down{Kind: messages.HTTP, Class: messages.ClassThrottled, RetryAfter: 20 * time.Second, Connected: time.Hour},
			messages.RetryAt, 20 * time.Second, 22 * time.Second},
		{"a tiny Retry-After", restart.Record{}, down{Kind: messages.HTTP, Class: messages.ClassThrottled,
			RetryAfter: time.Millisecond},
			messages.RetryAt, 200 * time.Millisecond, 200 * time.Millisecond},
		{"a day's Retry-After: the jitter ends at the cap", restart.Record{},
			down{Kind: messages.HTTP, Class: messages.ClassThrottled, RetryAfter: 24 * time.Hour},
			messages.RetryAt, 24 * time.Hour, 24*time.Hour + time.Minute},
		{"Retry-After beyond the probe", restart.Record{Attempts: 10},
			down{Kind: messages.HTTP, Class: messages.ClassThrottled, RetryAfter: time.Hour},
			messages.RetryParked, time.Hour, time.Hour + time.Minute},
		{"Retry-After before the probe", restart.Record{Attempts: 10},
			down{Kind: messages.HTTP, Class: messages.ClassThrottled, RetryAfter: time.Second},
			messages.RetryParked, 270 * time.Second, 330 * time.Second},
		{"our machine is exhausted for the third time", restart.Record{Exhausted: 2}, down{Kind: messages.Stdio,
			Class: messages.ClassExhausted},
			messages.RetryAt, 200 * time.Millisecond, 4 * time.Second},
	} {
		for _, draw := range []struct {
			x    float64
			want time.Duration
		}{{0, c.low}, {almostOne, c.high}} {
			_, d := p.Down(c.record, c.down, start, always(draw.x))
			if got := d.At.Sub(start); d.Retry != c.retry || (got-draw.want).Abs() > time.Millisecond {
				t.Errorf("%s, drawing %v: %s after %v, want %s after %v", c.name, draw.x, d.Retry, got, c.retry, draw.want)
			}
		}
	}
}

func TestRetryAfterWithoutEnd(t *testing.T) {
	p := restart.DefaultPolicy()
	_, d := p.Down(restart.Record{}, restart.Down{Kind: messages.HTTP, Class: messages.ClassThrottled,
		RetryAfter: math.MaxInt64},
		start, always(almostOne))
	if d.Retry != messages.RetryAt || d.At.Sub(start) < 50*365*24*time.Hour {
		t.Errorf("%+v: an absurd wish must not overflow into the past", d)
	}
}

// TestParkingStory follows one stdio server through its life, record by record.
func TestParkingStory(t *testing.T) {
	p := restart.DefaultPolicy()
	fail := restart.Down{Kind: messages.Stdio, Class: messages.ClassExited}
	var r restart.Record
	var d restart.Decision
	for n := 1; n <= 5; n++ {
		if r, d = p.Down(r, fail, start, always(0.5)); r.Attempts != n || r.Parked || d.Retry != messages.RetryAt {
			t.Fatalf("failure %d: %+v, %+v", n, r, d)
		}
	}
	// Exhaustion of the machine in between does not park.
	for range 20 {
		if r, d = p.Down(r, restart.Down{Kind: messages.Stdio, Class: messages.ClassExhausted}, start,
			always(0.5)); r.Parked {
			t.Fatalf("parked by exhaustion: %+v", r)
		}
	}
	if r.Attempts != 5 || r.Exhausted != 20 || d.At.Sub(start) > time.Minute {
		t.Fatalf("after exhaustion: %+v, %+v", r, d)
	}
	r, d = p.Down(r, fail, start, always(0.5))
	if want := (restart.Record{Attempts: 6, Parked: true}); r != want || d.Retry != messages.RetryParked ||
		d.At.Sub(start) != 5*time.Minute {
		t.Fatalf("failure 6: %+v, %+v", r, d)
	}
	if r.Priority() != restart.Probe {
		t.Errorf("a parked server asks as %v", r.Priority())
	}
	for range 1000 { // for ever
		if r, d = p.Down(r, fail, start, always(0.5)); d.Retry != messages.RetryParked || d.At.Sub(start) != 5*time.Minute {
			t.Fatalf("failed probe: %+v, %+v", r, d)
		}
	}
	// The probe connects, and dies too soon: parked again at once.
	if r = p.Connected(r); r.Parked || !r.EverConnected || r.Attempts != 1006 {
		t.Fatalf("a probe that connects: %+v", r)
	}
	soon := fail
	soon.Connected = 59 * time.Second
	if r, d = p.Down(r, soon, start, always(0.5)); !r.Parked || d.Retry != messages.RetryParked {
		t.Fatalf("a probe that does not hold: %+v, %+v", r, d)
	}
	// The next one holds.
	r = p.Connected(r)
	soon.Connected = time.Minute
	if r, d = p.Down(r, soon, start, always(0.5)); r != (restart.Record{EverConnected: true}) ||
		d.At.Sub(start) != 250*time.Millisecond {
		t.Fatalf("a probe that holds: %+v, %+v", r, d)
	}
	// A person clears; what is known of the spec stays.
	if r = p.Cleared(restart.Record{Attempts: 9, Exhausted: 3, EverConnected: true,
		Parked: true}); r != (restart.Record{EverConnected: true}) {
		t.Errorf("cleared: %+v", r)
	}
	// A probe that is refused leads to needs-auth, and nothing is probed any more.
	r, d = p.Down(restart.Record{Attempts: 6, Parked: true}, restart.Down{Class: messages.ClassUnauthorized}, start,
		always(0))
	if r.Parked || d != (restart.Decision{Retry: messages.RetryNever}) {
		t.Errorf("a refused probe: %+v, %+v", r, d)
	}
}

func TestPriorityOfRecord(t *testing.T) {
	for want, r := range map[restart.Priority]restart.Record{
		restart.Never: {Attempts: 3}, restart.Healthy: {Attempts: 3, EverConnected: true},
		restart.Probe: {EverConnected: true, Parked: true},
	} {
		if got := r.Priority(); got != want {
			t.Errorf("%+v asks as %v, want %v", r, got, want)
		}
	}
}

func TestWoken(t *testing.T) {
	p := restart.DefaultPolicy()
	if got := p.Woken(start, always(0)); !got.Equal(start) {
		t.Errorf("earliest: %v", got)
	}
	if got := p.Woken(start, always(almostOne)).Sub(start); got > 5*time.Second || got < 4999*time.Millisecond {
		t.Errorf("latest: %v", got)
	}
}

// TestEnvelope states invariant I7 without the policy's own arithmetic: whatever happens to a server, the next attempt
// lies between the bounds that the package comment names.
func TestEnvelope(t *testing.T) {
	p := restart.DefaultPolicy()
	rapid.Check(t, func(t *rapid.T) {
		var r restart.Record
		now := start
		failures := 0 // the test's own count
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			d := restart.Down{
				Kind:  rapid.SampledFrom(messages.TransportKinds).Draw(t, "kind"),
				Class: rapid.SampledFrom(messages.Classes).Draw(t, "class"),
			}
			if rapid.IntRange(0, 4).Draw(t, "asks for a time") == 0 {
				d.RetryAfter = time.Duration(rapid.Int64Range(1, int64(2*time.Hour)).Draw(t, "retry after"))
			}
			if rapid.IntRange(0, 3).Draw(t, "connects") == 0 {
				r = p.Connected(r)
				d.Connected = time.Duration(rapid.Int64Range(0, int64(2*time.Minute)).Draw(t, "connected"))
			}
			x := rapid.Float64Range(0, almostOne).Draw(t, "x")
			stable := d.Connected >= time.Minute
			next, decision := p.Down(r, d, now, always(x))
			delay := decision.At.Sub(now)

			if stable {
				failures = 0
			}
			retried := restart.Retries(d.Class, r.EverConnected)
			if retried && d.Class != messages.ClassExhausted && !stable {
				failures++
			}
			limit := 10
			if d.Kind == messages.Stdio {
				limit = 6
			}
			if next.Attempts != failures {
				t.Fatalf("%d failures are counted as %d", failures, next.Attempts)
			}
			switch {
			case !retried:
				if decision.Retry != messages.RetryNever || !decision.At.IsZero() {
					t.Fatalf("%q is followed by %+v", d.Class, decision)
				}
				r = next
				continue
			case delay < d.RetryAfter:
				t.Fatalf("an attempt after %v, the server asked for %v", delay, d.RetryAfter)
			case decision.Retry == messages.RetryParked:
				if !next.Parked || delay < 270*time.Second || delay > max(330*time.Second, d.RetryAfter+time.Minute) {
					t.Fatalf("a probe after %v, %+v", delay, next)
				}
			case next.Parked:
				t.Fatalf("parked, and %s", decision.Retry)
			case failures >= limit && d.Class != messages.ClassExhausted:
				t.Fatalf("%d failures of %s do not park", failures, d.Kind)
			case d.RetryAfter > 0:
				if delay > d.RetryAfter+min(d.RetryAfter/10, time.Minute) && delay != 200*time.Millisecond {
					t.Fatalf("an attempt after %v, the server asked for %v", delay, d.RetryAfter)
				}
			case stable && d.Class != messages.ClassExhausted:
				if delay > 500*time.Millisecond {
					t.Fatalf("a healthy server waits for %v", delay)
				}
			case delay < 200*time.Millisecond || delay > time.Minute:
				t.Fatalf("an attempt after %v", delay)
			}
			now, r = decision.At, next
		}
	})
}

func TestPolicyValidate(t *testing.T) {
	if err := restart.DefaultPolicy().Validate(); err != nil {
		t.Errorf("the default: %v", err)
	}
	for field, spoil := range map[string]func(p *restart.Policy){
		"NetworkBase":      func(p *restart.Policy) { p.NetworkBase = 0 },
		"StdioBase":        func(p *restart.Policy) { p.StdioBase = -1 },
		"Factor":           func(p *restart.Policy) { p.Factor = math.NaN() },
		"Cap":              func(p *restart.Policy) { p.Cap = 999 * time.Millisecond },
		"Floor":            func(p *restart.Policy) { p.Floor = 61 * time.Second },
		"Stable":           func(p *restart.Policy) { p.Stable = 0 },
		"Quick":            func(p *restart.Policy) { p.Quick = -1 },
		"StdioPark":        func(p *restart.Policy) { p.StdioPark = 0 },
		"NetworkPark":      func(p *restart.Policy) { p.NetworkPark = 0 },
		"Probe":            func(p *restart.Policy) { p.Probe = 0 },
		"ProbeJitter":      func(p *restart.Policy) { p.ProbeJitter = 1 },
		"RetryAfterJitter": func(p *restart.Policy) { p.RetryAfterJitter = math.Inf(1) },
		"WakeSpread":       func(p *restart.Policy) { p.WakeSpread = -1 },
	} {
		p := restart.DefaultPolicy()
		spoil(&p)
		if err := p.Validate(); err == nil || !strings.HasPrefix(err.Error(), field+" ") || strings.Contains(err.Error(),
			"\n") {
			t.Errorf("%s: %v", field, err)
		}
	}
	if err := (restart.Policy{}).Validate(); err == nil || strings.Count(err.Error(), "\n") < 5 {
		t.Errorf("the zero value: %v", err)
	}
}

// Each number of a policy may be as small and as large as its text says, and no more.
func TestPolicyBounds(t *testing.T) {
	const moment = time.Nanosecond
	for i, c := range []struct {
		set  func(p *restart.Policy)
		want bool
	}{
		{func(p *restart.Policy) { p.NetworkBase = moment }, true},
		{func(p *restart.Policy) { p.StdioBase = 0 }, false},
		{func(p *restart.Policy) { p.StdioBase = moment }, true},
		{func(p *restart.Policy) { p.Factor = 1 }, true},
		{func(p *restart.Policy) { p.Factor = 0.99 }, false},
		{func(p *restart.Policy) { p.Factor = 100 }, true},
		{func(p *restart.Policy) { p.Factor = 100.1 }, false},
		{func(p *restart.Policy) { p.Cap = p.StdioBase }, true},
		{func(p *restart.Policy) { p.Floor = 0 }, false},
		{func(p *restart.Policy) { p.Floor = p.Cap }, true},
		{func(p *restart.Policy) { p.Stable = moment }, true},
		{func(p *restart.Policy) { p.Quick = 0 }, true},
		{func(p *restart.Policy) { p.StdioPark = 1 }, true},
		{func(p *restart.Policy) { p.NetworkPark = 1 }, true},
		{func(p *restart.Policy) { p.Probe = moment }, true},
		{func(p *restart.Policy) { p.ProbeJitter = -0.01 }, false},
		{func(p *restart.Policy) { p.ProbeJitter = 0 }, true},
		{func(p *restart.Policy) { p.ProbeJitter = 0.99 }, true},
		{func(p *restart.Policy) { p.RetryAfterJitter = -0.01 }, false},
		{func(p *restart.Policy) { p.RetryAfterJitter = 0 }, true},
		{func(p *restart.Policy) { p.RetryAfterJitter = 1 }, true},
		{func(p *restart.Policy) { p.RetryAfterJitter = 1.01 }, false},
		{func(p *restart.Policy) { p.WakeSpread = 0 }, true},
	} {
		p := restart.DefaultPolicy()
		c.set(&p)
		if err := p.Validate(); (err == nil) != c.want {
			t.Errorf("case %d: %v", i, err)
		}
	}
}

func TestLimits(t *testing.T) {
	want := restart.Limits{
		Processes: 8, PerOrigin: 16, Network: 64, InProcess: 64, Hold: 2 * time.Second, UnansweredFactor: 8,
		Age: 10 * time.Second,
	}
	if got := restart.DefaultLimits(2); got != want {
		t.Errorf("%+v", got)
	}
	if got := restart.DefaultLimits(0); got.Processes != 4 {
		t.Errorf("%+v", got)
	}
	if err := want.Validate(); err != nil {
		t.Error(err)
	}
	if err := (restart.Limits{}).Validate(); err != nil {
		t.Error(err)
	}
	err := restart.Limits{Processes: -1, PerOrigin: -1, Network: -1, InProcess: -1, Hold: -1, UnansweredFactor: -1,
		Age: -1}.Validate()
	if err == nil || strings.Count(err.Error(), "must not be negative") != 7 {
		t.Error(err)
	}
	for p, text := range map[restart.Priority]string{
		restart.Probe: "probe", restart.Never: "never", restart.Healthy: "healthy", restart.Urgent: "asked", 9: "invalid",
	} {
		if p.String() != text {
			t.Errorf("priority %d is %q", p, p)
		}
	}
}

func ExamplePolicy_Interval() {
	p := restart.DefaultPolicy()
	for n := 1; n <= 8; n++ {
		fmt.Print(p.Interval(messages.Stdio, n), " ")
	}
	fmt.Println()
	// Output:
	// 1s 2s 4s 8s 16s 32s 1m0s 1m0s
}

func ExamplePolicy_Down() {
	p, now := restart.DefaultPolicy(), time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	middle := func() float64 { return 0.5 } // a program passes rand.Float64

	var r restart.Record
	r, d := p.Down(r, restart.Down{Kind: messages.HTTP, Class: messages.ClassNetwork}, now, middle)
	fmt.Println(d.Retry, d.At.Sub(now), r.Attempts)

	r = p.Connected(r)
	r, d = p.Down(r, restart.Down{Kind: messages.HTTP, Class: messages.ClassNetwork, Connected: time.Hour}, now, middle)
	fmt.Println(d.Retry, d.At.Sub(now), r.Attempts)

	_, d = p.Down(r, restart.Down{Kind: messages.HTTP, Class: messages.ClassUnauthorized}, now, middle)
	fmt.Println(d.Retry, d.At.IsZero())
	// Output:
	// retry 350ms 1
	// retry 250ms 0
	// none true
}

func BenchmarkPolicyDown(b *testing.B) {
	p, r := restart.DefaultPolicy(), restart.Record{Attempts: 4}
	d := restart.Down{Kind: messages.Stdio, Class: messages.ClassExited}
	b.ReportAllocs()
	for b.Loop() {
		p.Down(r, d, start, always(0.5))
	}
}
