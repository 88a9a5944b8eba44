package messages

import (
	"strings"
	"testing"
)

func TestEscapedShowsWhatIsHidden(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\n":              "plain\ttext\n",
		"a\r\nb":                     "a\nb",
		"a\rb":                       `a\x0db`,
		"\x1b[8mgone":                `\x1b[8mgone`,
		"\u202eabc\u200b\u0085":      `\u202eabc\u200b\u0085`,
		"ok\U000e0072\U000e006d now": `ok\U000e0072\U000e006d(hidden text: "rm") now`,
		"\U000e0072\U000e006d":       `\U000e0072\U000e006d(hidden text: "rm")`,
		`C:\temp \d+`:                `C:\temp \d+`,
		`\u200b`:                     `\\u200b`,
		`\\x`:                        `\\\\x`,
		"\xff":                       `\xff`,
		"\ufffd":                     "\ufffd",
		"":                           "",
	} {
		if got := Escaped(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
	if n := CountHidden("a\u200b\x1b[0m\r\n\n\ufffd"); n != 2 {
		t.Errorf("%d hidden characters", n)
	}
}

// FuzzEscaped: nothing that acts on a terminal comes out, whatever goes in, and two texts never look the same.
func FuzzEscaped(f *testing.F) {
	for _, s := range []string{"a\x1b[8m", "\u202e", "\U000e0041", `\u202e`, `\\`, "\xff\\xff", "a\r\nb"} {
		f.Add(s, s+"x")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if out := Escaped(a); strings.ReplaceAll(Printable(out), "\ufffd", "") != strings.ReplaceAll(out, "\ufffd", "") {
			t.Errorf("%q becomes %q", a, out)
		}
		if plain := func(s string) bool {
			return CountHidden(s) == 0 && !strings.Contains(s, "\r") && !strings.Contains(s, "\ufffd")
		}; plain(a) &&
			!plain(b) && Escaped(a) == Escaped(b) && !strings.Contains(b, "\r") && !strings.Contains(b, "\ufffd") {
			t.Errorf("%q and %q look the same: %q", a, b, Escaped(a))
		}
	})
}
