package agents

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/history"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
)

// timedBody gives one line at a time, each after a silence of its own.
type timedBody struct {
	now   *time.Duration
	after []time.Duration
}

func (b *timedBody) Read(p []byte) (int, error) {
	if len(b.after) == 0 {
		return 0, io.EOF
	}
	*b.now += b.after[0]
	b.after = b.after[1:]
	return copy(p, ":\n"), nil
}

func (b *timedBody) Close() error { return nil }

// TestASilentStreamIsReported: the endpoint keeps a stream open with lines that mean nothing, and goes on to do so.
func TestASilentStreamIsReported(t *testing.T) {
	for _, c := range []struct {
		name   string
		after  []time.Duration
		silent bool
	}{
		{"a line every 15 s", []time.Duration{15 * time.Second, 15 * time.Second, 15 * time.Second}, false},
		{"one line only", []time.Duration{15 * time.Second, 30 * time.Second}, true},
	} {
		var now time.Duration
		var said []string
		f := &Fleet{Options: Options{
			Record: func(e history.Event) { said = append(said, e.Name+" "+e.Text) },
			Now:    func() time.Duration { return now },
		}}
		s := &session{agent: newAgent(f, scenario.PlannedAgent{Name: "agent-1"}, 1)}
		(&eventReader{link: newHTTPLink(s), body: &timedBody{now: &now, after: c.after}}).readEvents()
		if (len(said) > 0) != c.silent || c.silent && !strings.HasPrefix(said[0], "I28 agent-1 heard nothing for 30s") {
			t.Errorf("%s: %q", c.name, said)
		}
	}
}
