package config

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// lookalikes are letters of other scripts that are drawn like a letter of ASCII in the fonts of terminals, in lower case. What NFKD
// takes apart (full width, mathematical letters, accents) is not among them. After Unicode Technical Standard 39, whose whole table
// is not here: Cyrillic, Greek, Armenian, Cherokee and some of Latin itself.
var lookalikes = map[rune]rune{
	'а': 'a', 'в': 'b', 'ԁ': 'd', 'е': 'e', 'ҽ': 'e', 'һ': 'h', 'н': 'h', 'і': 'i', 'ӏ': 'l', 'ј': 'j', 'к': 'k', 'м': 'm', 'о': 'o',
	'р': 'p', 'ԛ': 'q', 'г': 'r', 'ѕ': 's', 'т': 't', 'у': 'y', 'ѵ': 'v', 'ԝ': 'w', 'х': 'x', 'с': 'c', 'ѡ': 'w', 'ү': 'y', 'ґ': 'r',
	'α': 'a', 'β': 'b', 'ε': 'e', 'η': 'n', 'ι': 'i', 'κ': 'k', 'μ': 'u', 'ν': 'v', 'ο': 'o', 'ρ': 'p', 'τ': 't', 'υ': 'u', 'χ': 'x',
	'ϲ': 'c', 'ϳ': 'j', 'γ': 'y', 'ω': 'w', 'ѐ': 'e', 'ѓ': 'r',
	'օ': 'o', 'ո': 'n', 'ս': 'u', 'հ': 'h', 'ց': 'g', 'ք': 'p', 'զ': 'q', 'ա': 'w', 'յ': 'j',
	'ı': 'i', 'ɑ': 'a', 'ɡ': 'g', 'ɩ': 'i', 'ɪ': 'i', 'ʏ': 'y', 'ⅼ': 'l', 'ǀ': 'l', 'ł': 'l', 'ø': 'o', 'đ': 'd', 'ħ': 'h', 'ŧ': 't', 'ſ': 's',
}

// Skeleton returns a name as it looks to the eye: two names with one skeleton are easily taken for each other. Case, accents and the forms that
// Unicode calls compatible do not count, nor do signs between the words, nor l, 1 and I, O and 0.
func Skeleton(name string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(name) {
		r = unicode.ToLower(r)
		if to, ok := lookalikes[r]; ok {
			r = to
		}
		switch {
		case unicode.Is(unicode.M, r), !unicode.IsLetter(r) && !unicode.IsDigit(r):
		case r == '1' || r == 'i':
			b.WriteRune('l')
		case r == '0':
			b.WriteRune('o')
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// looksASCII is the letter of ASCII that r is drawn like; false for others, and for ASCII itself.
func looksASCII(r rune) bool {
	if r < 0x80 {
		return false
	}
	d, _ := utf8.DecodeRuneInString(norm.NFKD.String(string(unicode.ToLower(r))))
	if to, ok := lookalikes[d]; ok {
		d = to
	}
	return d < 0x80
}

// disguisedOffsets are the offsets of the letters in s that make one of its words look like another: a word that mixes letters of ASCII
// with letters of another script, and one whose letters of another script all look like ASCII.
func disguisedOffsets(s string) map[int]bool {
	var at map[int]bool
	mark := func(word string, from int) {
		latin, foreign, alike := false, 0, 0
		for _, r := range word {
			switch {
			case r < 0x80 && unicode.IsLetter(r), unicode.Is(unicode.Latin, r) && !looksASCII(r):
				latin = true
			case unicode.IsLetter(r) && !isAccented(r):
				if foreign++; looksASCII(r) {
					alike++
				}
			}
		}
		if foreign == 0 || alike == 0 || !latin && alike < foreign {
			return
		}
		for i, r := range word {
			if r >= 0x80 && unicode.IsLetter(r) && !isAccented(r) {
				if at == nil {
					at = map[int]bool{}
				}
				at[from+i] = true
			}
		}
	}
	begin := -1
	for i, r := range s {
		part := unicode.IsLetter(r) || unicode.Is(unicode.M, r) || unicode.IsDigit(r)
		if part && begin < 0 {
			begin = i
		} else if !part && begin >= 0 {
			mark(s[begin:i], begin)
			begin = -1
		}
	}
	if begin >= 0 {
		mark(s[begin:], begin)
	}
	return at
}

// isAccented reports whether r is a letter of ASCII with marks, which no reader takes for it without them.
func isAccented(r rune) bool {
	d := []rune(norm.NFD.String(string(r)))
	return len(d) > 1 && d[0] < 0x80
}
