package messages

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Escaped neutralises a text for a person who must see its hidden parts: each character that Printable would replace
// stands as \x1b, \u202e or \U000e0041, and a backslash that could be taken for the beginning of one stands twice.
// Letters hidden as Unicode tags, which a model reads and a person does not see, are spelled out after them.
func Escaped(s string) string {
	if strings.IndexFunc(s, unsafeRune) < 0 && !strings.Contains(s, `\`) {
		return s
	}
	var b, tags strings.Builder
	flush := func() {
		if tags.Len() > 0 {
			fmt.Fprintf(&b, "(hidden text: %q)", tags.String())
			tags.Reset()
		}
	}
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		rest := s[i+size:]
		if r < 0xe0020 || r > 0xe007e {
			flush()
		}
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\\' && rest != "" && strings.ContainsRune(`xuU\`, rune(rest[0])):
			b.WriteString(`\\`)
		case r == '\r' && strings.HasPrefix(rest, "\n"): // as usual in texts of Windows programs
		case !unsafeRune(r) || r == utf8.RuneError:
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
			if r >= 0xe0020 && r <= 0xe007e {
				tags.WriteRune(r - 0xe0000)
			}
		}
		i += size
	}
	flush()
	return b.String()
}

// CountHidden counts the characters of a text that a terminal does not show, or obeys.
func CountHidden(s string) (n int) {
	for i, r := range s {
		if unsafeRune(r) && r != utf8.RuneError && (r != '\r' || !strings.HasPrefix(s[i+1:], "\n")) {
			n++
		}
	}
	return n
}
