package inspect

import (
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// TestAPreviewShowsWhoSettledAndWhoIsWaitedFor checks the lines of a preview after each change of the statuses.
func TestAPreviewShowsWhoSettledAndWhoIsWaitedFor(t *testing.T) {
	var out recorder
	v := &preview{out: &out, settled: map[string]messages.Status{}, size: func() (int, int) { return 40, 5 }}
	st := func(name string, phase messages.Phase) messages.Status {
		return messages.Status{Name: name, Status: phase, Error: "it is not there, and this line is too long for the terminal"}
	}
	now := time.Unix(0, 0)
	draw := func(want string, all ...messages.Status) {
		t.Helper()
		out.text = ""
		if v.draw(all, now); out.text != want {
			t.Errorf("drawn: %q, not %q", out.text, want)
		}
	}
	draw("", st("a", messages.Pending), st("b", messages.Pending))
	draw("a                    connected\nwaiting for b (--wait bounds it)\n", st("a", messages.Connected), st("b", messages.Pending))
	draw("\x1b[2A\r\x1b[Ja                    failed      it is\u2026\nwaiting for b (--wait bounds it)\n",
		st("a", messages.Failed), st("b", messages.Pending))
	// A server that is pending again is shown with its last failure.
	draw("", st("a", messages.Pending), st("b", messages.Pending))
	draw("\x1b[2A\r\x1b[Ja                    failed      it is\u2026\nc                    disabled\n\u2026 and 2 more\nwaiting for b (--wait bounds it)\n",
		st("a", messages.Failed), st("b", messages.Pending), messages.Status{Name: "c", Status: messages.Disabled},
		messages.Status{Name: "d", Status: messages.Disabled}, messages.Status{Name: "e", Status: messages.Disabled})
	draw("", st("a", messages.Failed), st("b", messages.Connected))
	out.text = ""
	if v.clear(true); out.text != "\x1b[4A\r\x1b[J" {
		t.Errorf("%q", out.text)
	}
	draw("", st("a", messages.Failed), messages.Status{Name: "z", Status: messages.Pending})
}

// recorder is a writer that keeps the text.
type recorder struct{ text string }

func (r *recorder) Write(b []byte) (int, error) {
	r.text += string(b)
	return len(b), nil
}
