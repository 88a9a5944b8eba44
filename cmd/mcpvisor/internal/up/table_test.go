package up

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/mcpvisor/mcpvisor/messages"
)

// noon is the time of all pictures.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.Local)

// newStatus returns a status for a picture; next is the time until the next attempt, 0 for none.
func newStatus(name string, phase messages.Phase, next time.Duration, change func(*messages.Status)) messages.Status {
	st := messages.Status{Name: name, Status: phase, Transport: messages.Stdio}
	if next != 0 {
		at := noon.Add(next)
		st.NextAttempt, st.Retry = &at, messages.RetryAt
	}
	if change != nil {
		change(&st)
	}
	return st
}

// tools returns n tools without names.
func tools(n int) []messages.ToolInfo { return make([]messages.ToolInfo, n) }

// everything returns a board with a server in each state.
func everything() *board {
	b := newBoard()
	for i, st := range []messages.Status{
		newStatus("clock", messages.Connected, 0, func(st *messages.Status) {
			st.Tools, st.Transport = tools(12), messages.SDK
		}),
		newStatus("crashes", messages.Pending, 1400*time.Millisecond, func(st *messages.Status) {
			st.Step, st.Restarts = messages.Restarting, 17
			st.Error = "the process ended with exit status 1; its last words: fatal: out of luck"
		}),
		newStatus("files", messages.Pending, 0, func(st *messages.Status) { st.Step = messages.Handshaking }),
		newStatus("lazy", messages.Pending, 0, func(st *messages.Status) { st.Step, st.Tools = messages.Idle, tools(3) }),
		newStatus("missing", messages.Failed, 0, func(st *messages.Status) {
			st.Retry, st.Error = messages.RetryNever, `the command "no-such" was not found; install it, or give its full path`
		}),
		newStatus("off", messages.Disabled, 0, func(st *messages.Status) { st.Warm = true }),
		newStatus("parked", messages.Failed, 4*time.Minute+10*time.Second, func(st *messages.Status) {
			st.Retry, st.Attempts, st.Error = messages.RetryParked, 6, "no answer to initialize in time"
		}),
		newStatus("private", messages.NeedsAuth, 0, func(st *messages.Status) {
			st.Transport, st.Error = messages.HTTP, "example.com asks for authorization (401 Unauthorized)"
		}),
	} {
		at := noon.Add(time.Duration(i-10) * time.Second)
		b.applyEvent(messages.Event{Kind: messages.EventPhase, Time: at, Server: st.Name, Status: &st})
	}
	return b
}

// busy returns everything with calls.
func busy() *board {
	b := everything()
	for i, name := range b.serverNames() {
		for range 40 - i {
			b.countCall(name, messages.OutcomeResult)
		}
		for range i {
			b.countCall(name, messages.OutcomeNotSent)
		}
	}
	b.countCall("crashes", messages.OutcomeUnknown)
	b.countCall("clock", messages.OutcomeToolError)
	return b
}

// hostile returns a board whose servers have names and errors that try to act on a terminal.
func hostile() *board {
	b := newBoard()
	for i, name := range []string{
		"\x1b[2J\x1b[31mred", "bidi\u202egnp", "line\nbreak\ttab", "wide名前サーバー", "emoji👩\u200d👩\u200d👧",
		"combining e\u0301\u0301\u0301", strings.Repeat("long", 30), "zero\u200bwidth", "bell\a", "\xff\xfe",
	} {
		st := newStatus(name, messages.Failed, time.Second, func(st *messages.Status) {
			st.Error = "it said \x1b]0;owned\a\u2066" + name + strings.Repeat(" and more", 20)
		})
		at := noon.Add(time.Duration(i) * time.Second)
		b.applyEvent(messages.Event{Kind: messages.EventPhase, Time: at, Server: name, Status: &st})
	}
	return b
}

// many returns a board with more servers than a terminal has lines; every tenth has failed.
func many() *board {
	b := newBoard()
	for i := range 60 {
		st := newStatus(fmt.Sprintf("server-%02d", i), messages.Connected, 0, nil)
		if i%10 == 0 {
			st.Status, st.Retry, st.Error = messages.Failed, messages.RetryNever, "broken"
		}
		b.applyEvent(messages.Event{Kind: messages.EventPhase, Time: noon, Server: st.Name, Status: &st})
	}
	return b
}

// picture returns a frame of a board with a head, an intro and a foot.
func picture(b *board, width, height int) *frame {
	return &frame{
		board: b, now: noon, width: width, height: height, head: []string{"mcpvisor 1.0 · a project", b.phaseSummary()},
		intro: strings.TrimSpace(strings.Repeat("Words that explain what is seen. ", 6)), foot: []string{"Ctrl-C ends it"},
	}
}

// TestPictures compares pictures of boards in several sizes with the files of testdata/pictures.
func TestPictures(t *testing.T) {
	for name, f := range map[string]*frame{
		"everything":           picture(everything(), 120, 40),
		"everything_80":        picture(everything(), 80, 24),
		"everything_48":        picture(everything(), 48, 24),
		"everything_30":        picture(everything(), 30, 24),
		"everything_12":        picture(everything(), 12, 24),
		"everything_unbounded": picture(everything(), 0, 0),
		"everything_low":       picture(everything(), 80, 12),
		"calls":                picture(busy(), 120, 40),
		"calls_80":             picture(busy(), 80, 24),
		"hostile":              picture(hostile(), 100, 40),
		"hostile_30":           picture(hostile(), 30, 40),
		"many":                 picture(many(), 80, 30),
		"nothing":              picture(newBoard(), 80, 24),
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, strings.Join(f.renderLines(), "\n")+"\n") })
	}
	coloured := picture(everything(), 80, 24)
	coloured.coloured = true
	golden(t, "everything_coloured", strings.ReplaceAll(strings.Join(coloured.renderLines(), "\n"), "\x1b", "␛")+"\n")
}

// update makes the tests write the pictures in place of comparing them; the difference is reviewed as text.
var update = flag.Bool("update", false, "rewrite the expected pictures in testdata/pictures")

// golden compares a text with a file of testdata/pictures, or with -update writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", "pictures", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is another picture now (-%s rewrites it):\n%s", file, flag.Lookup("update").Name, got)
	}
}

// TestPicturesKeepWithinTheTerminal draws boards at random sizes: no picture may exceed the terminal, hold anything that acts
// on it, or leave a colour open.
func TestPicturesKeepWithinTheTerminal(t *testing.T) {
	colour := regexp.MustCompile(`\x1b\[[0-9;]*m`)
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		for name, b := range map[string]*board{
			"everything": everything(), "busy": busy(), "hostile": hostile(), "many": many(), "nothing": newBoard(),
		} {
			f := picture(b, 1+rnd.IntN(200), 1+rnd.IntN(60))
			f.coloured = rnd.IntN(2) == 0
			lines := f.renderLines()
			if len(lines) > f.height {
				t.Fatalf("%s: %d lines on %d", name, len(lines), f.height)
			}
			for _, l := range lines {
				bare := colour.ReplaceAllString(l, "")
				if w := text.StringWidthWithoutEscSequences(bare); w > f.width {
					t.Fatalf("%s: %d columns on %d: %q", name, w, f.width, l)
				}
				if messages.Line(bare, 0) != strings.Join(strings.Fields(bare), " ") {
					t.Fatalf("%s: not neutralised: %q", name, l)
				}
				if opened := strings.LastIndex(l, "\x1b["); opened >= 0 && !strings.HasPrefix(l[opened:], "\x1b[0m") {
					t.Fatalf("%s: a colour is left open: %q", name, l)
				}
			}
		}
	}
}

// TestPicturesShowWhatFailed checks that connected servers are left out first if not all fit.
func TestPicturesShowWhatFailed(t *testing.T) {
	got := strings.Join(picture(many(), 80, 20).renderLines(), "\n")
	for i := 0; i < 60; i += 10 {
		if name := fmt.Sprintf("server-%02d", i); !strings.Contains(got, name+"  failed") {
			t.Errorf("%s has failed and is not shown:\n%s", name, got)
		}
	}
}

// TestCountdown checks that countdownText rounds up, so that no countdown shows 0s.
func TestCountdown(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Millisecond: "1s", time.Second: "1s", 1001 * time.Millisecond: "2s", 59 * time.Second: "59s",
		59*time.Second + 1: "1m00s", 5 * time.Minute: "5m00s", 75 * time.Minute: "75m00s",
	} {
		if got := countdownText(d); got != want {
			t.Errorf("countdownText(%v) = %q, not %q", d, got, want)
		}
	}
}
