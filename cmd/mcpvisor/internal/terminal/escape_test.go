package terminal

import (
	"bytes"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/mcpvisor/mcpvisor/messages"
)

// TestATerminalIsToldNothingByStrangers checks that escapeWriter escapes what acts on a terminal, and passes this program's own
// sequences.
func TestATerminalIsToldNothingByStrangers(t *testing.T) {
	for in, want := range map[string]string{
		"a\u009b31mb":                  `a\u009b31mb`,
		"\x1b]52;c;eA==\x07":           `\x1b]52;c;eA==\x07`,
		"\x1b[8mhidden\x1b[28m":        `\x1b[8mhidden\x1b[28m`,
		"\x1b[6n\x1b[?1000h\x1bc":      `\x1b[6n\x1b[?1000h\x1bc`,
		"\u202eevil\u2066\u200b\ufeff": `\u202eevil\u2066\u200b\ufeff`,
		"\U000e0041\U000e0042":         `\U000e0041\U000e0042`,
		"\xed\xa0\x80 \xff":            `\xed\xa0\x80 \xff`,
		"over\rwritten\b\b":            `over\x0dwritten\x08\x08`,
		"plain\tä€𝄞 �\n":               "plain\tä€𝄞 �\n",
		"":                             "",
	} {
		var out bytes.Buffer
		w := &escapeWriter{out: &out}
		if n, err := w.Write([]byte(in)); n != len(in) || err != nil || out.String() != want {
			t.Errorf("%q: %q, not %q (%d, %v)", in, out.String(), want, n, err)
		}
		out.Reset()
		for i := range len(in) { // cut anywhere
			_, _ = w.Write([]byte{in[i]})
		}
		if strings.ContainsRune(in, 0x1b) || strings.ContainsRune(in, '\r') {
			continue // this program writes its sequences whole
		}
		if out.String() != want {
			t.Errorf("%q, byte by byte: %q", in, out.String())
		}
	}
	for _, own := range []string{AnsiEnter, AnsiLeave, AnsiHome, AnsiDone, AnsiClear, "\r\x1b[K", "\r\x1b[2Kx", "a\r\n",
		text.Colors{text.FgGreen, text.Bold}.EscapeSeq(), text.Faint.EscapeSeq(), text.Reset.EscapeSeq(),
		text.Colors{text.FgYellow}.EscapeSeq(), text.Colors{text.FgHiRed}.EscapeSeq()} {
		var out bytes.Buffer
		if _, _ = (&escapeWriter{out: &out}).Write([]byte(own)); out.String() != own {
			t.Errorf("%q comes out as %q", own, out.String())
		}
	}
}

// FuzzTerminal checks that nothing but own sequences and printable text reaches a terminal, from any bytes.
func FuzzTerminal(f *testing.F) {
	f.Add([]byte("\x1b[31m\u009b\x1b[?1049h\xe2\x80\xae\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var out bytes.Buffer
		_, _ = (&escapeWriter{out: &out}).Write(b)
		rest := out.Bytes()
		for len(rest) > 0 {
			if own := ownSequencePattern().Find(rest[:min(len(rest), 32)]); own != nil {
				rest = rest[len(own):]
				continue
			}
			r, size := utf8.DecodeRune(rest)
			if s := string(rest[:size]); r != '\r' && r != utf8.RuneError && messages.Printable(s) != s || r == utf8.RuneError && size == 1 {
				t.Fatalf("%q lets %q through", b, s)
			}
			rest = rest[size:]
		}
	})
}
