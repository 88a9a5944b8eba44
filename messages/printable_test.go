package messages_test

import (
	"fmt"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/mcpvisor/mcpvisor/messages"
)

func ExamplePrintable() {
	fmt.Println(messages.Printable("\x1b]0;owned\x07 rm \u202egnp.exe"))
	fmt.Println(messages.Line("first line\nsecond line", 14))
	// Output:
	// �]0;owned� rm �gnp.exe
	// first line se…
}

func TestPrintable(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"plain", "Größe 漢字 👍 a\tb\n", "Größe 漢字 👍 a\tb\n"},
		{"colour", "\x1b[31mred\x1b[0m", "�[31mred�[0m"},
		{"title", "\x1b]0;t\x07", "�]0;t�"},
		{"C1 control sequence", "a\u009b31m", "a�31m"},
		{"NUL, backspace, delete", "\x00\b\x7f", "���"},
		{"lines of Windows", "a\r\nb\r\n", "a\nb\n"},
		{"a return alone overwrites the line", "safe\revil", "safe�evil"},
		{"two returns", "a\r\r\nb", "a�\nb"},
		{"bidi overrides and isolates", "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", strings.Repeat("�", 9)},
		{"bidi marks", "\u200e\u200f\u061c", "���"},
		{"zero width", "a\u200b\u200c\u200d\u2060\ufeffb", "a�����b"},
		{"tags", "\U000e0001\U000e0041\U000e007f", "���"},
		{"line and paragraph separator", "\u2028\u2029", "��"},
		{"fillers", "\u3164\u115f\uffa0\u034f", "����"},
		{"variation selectors carry hidden text", "a\ufe01\U000e0100", "a��"},
		{"the emoji's own selector", "❤️", "❤️"},
		{"number sign that is drawn", "\u06001", "\u06001"},
		{"invalid UTF-8", "a\xffb\xc3", "a�b�"},
		{"replacement character", "\ufffd", "\ufffd"},
	} {
		if got := messages.Printable(c.in); got != c.want {
			t.Errorf("%s: Printable(%q) = %q, want %q", c.name, c.in, got, c.want)
		}
	}
}

func TestLine(t *testing.T) {
	for _, c := range []struct {
		in    string
		limit int
		want  string
	}{
		{" a \n\t b ", 0, "a b"},
		{"abcde", 5, "abcde"},
		{"abcdef", 5, "abcd…"},
		{"äöüßé", 4, "äöü…"},
		{"ab", 1, "…"},
		{"a\x1bb", 3, "a�b"},
		{"abc", -1, "abc"},
	} {
		if got := messages.Line(c.in, c.limit); got != c.want {
			t.Errorf("Line(%q, %d) = %q, want %q", c.in, c.limit, got, c.want)
		}
	}
}

// FuzzPrintable states the property by Unicode's own tables instead of by the function under test.
func FuzzPrintable(f *testing.F) {
	for _, s := range []string{"", "plain", "\x1b[0m", "a\u202eb", "\U000e0041", "\xff\xfe", "a\r\n", "\r\r\n",
		"\u00a0\u3000"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		p := messages.Printable(s)
		if !utf8.ValidString(p) {
			t.Fatalf("%q is not valid UTF-8", p)
		}
		for _, r := range p {
			control := unicode.Is(unicode.Cc, r) && r != '\n' && r != '\t'
			if control || unicode.Is(unicode.Bidi_Control, r) || unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r) ||
				unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) || r >= 0xe0000 && r < 0xe1000 {
				t.Fatalf("%q of %q holds %U", p, s, r)
			}
		}
		if second := messages.Printable(p); second != p {
			t.Fatalf("%q, printed again, is %q", p, second)
		}
		if got, want := utf8.RuneCountInString(p), utf8.RuneCountInString(s)-strings.Count(s, "\r\n"); got != want {
			t.Fatalf("%q has %d characters, %q has %d without its returns", p, got, s, want)
		}
		if l := messages.Line(s, 10); utf8.RuneCountInString(l) > 10 || strings.ContainsAny(l, "\n\t\r") {
			t.Fatalf("Line(%q) is %q", s, l)
		}
	})
}

func BenchmarkPrintable(b *testing.B) {
	text := strings.Repeat("an ordinary description of a tool. ", 10)
	for b.Loop() {
		messages.Printable(text)
	}
}
