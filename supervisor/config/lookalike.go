package config

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// lookalikes maps letters of other scripts, in lower case, to the ASCII letter that the fonts of terminals draw alike. It holds
// Cyrillic, Greek, Armenian and some Latin letters after Unicode Technical Standard 39, whose whole table is not here. Letters
// that the normal form NFKD takes apart (full width, mathematical, accented) are absent, because Skeleton applies NFKD first.
var lookalikes = map[rune]rune{
	'а': 'a', 'в': 'b', 'ԁ': 'd', 'е': 'e', 'ҽ': 'e', 'һ': 'h', 'н': 'h', 'і': 'i', 'ӏ': 'l', 'ј': 'j', 'к': 'k', 'м': 'm', 'о': 'o',
	'р': 'p', 'ԛ': 'q', 'г': 'r', 'ѕ': 's', 'т': 't', 'у': 'y', 'ѵ': 'v', 'ԝ': 'w', 'х': 'x', 'с': 'c', 'ѡ': 'w', 'ү': 'y', 'ґ': 'r',
	'α': 'a', 'β': 'b', 'ε': 'e', 'η': 'n', 'ι': 'i', 'κ': 'k', 'μ': 'u', 'ν': 'v', 'ο': 'o', 'ρ': 'p', 'τ': 't', 'υ': 'u', 'χ': 'x',
	'ϲ': 'c', 'ϳ': 'j', 'γ': 'y', 'ω': 'w', 'ѐ': 'e', 'ѓ': 'r',
	'օ': 'o', 'ո': 'n', 'ս': 'u', 'հ': 'h', 'ց': 'g', 'ք': 'p', 'զ': 'q', 'ա': 'w', 'յ': 'j',
	'ı': 'i', 'ɑ': 'a', 'ɡ': 'g', 'ɩ': 'i', 'ɪ': 'i', 'ʏ': 'y', 'ⅼ': 'l', 'ǀ': 'l', 'ł': 'l', 'ø': 'o', 'đ': 'd', 'ħ': 'h', 'ŧ': 't', 'ſ': 's',
}

// Skeleton returns a name reduced to how it looks: a reader easily takes two names with one skeleton for each other. Case,
// accents and the forms that Unicode calls compatible do not count, nor do signs between the words, nor l, 1 and I, O and 0.
func Skeleton(name string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(name) {
		r = unicode.ToLower(r)
		if to, ok := lookalikes[r]; ok {
			r = to
		}
		switch {
		// NFKD has put accents behind their letter as marks of their own. They are left out, as signs are.
		case unicode.Is(unicode.M, r), !unicode.IsLetter(r) && !unicode.IsDigit(r):
		// In many fonts l, 1 and I are one shape; capitals have become small letters before.
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

// looksASCII reports whether a letter beyond ASCII is drawn like a letter of ASCII.
func looksASCII(r rune) bool {
	if r < 0x80 {
		return false
	}
	// NFKD turns a full-width or mathematical letter into its plain form, and puts the letter before its accents.
	d, _ := utf8.DecodeRuneInString(norm.NFKD.String(string(unicode.ToLower(r))))
	if to, ok := lookalikes[d]; ok {
		d = to
	}
	return d < 0x80
}

// disguisedOffsets returns the byte offsets of letters in s that make a word look like another one: letters of another script
// in a word with Latin letters, and all letters of a word that consists of ASCII look-alikes. A word of another script that
// only contains some look-alikes is ordinary text and stays unmarked. The result is nil for most texts.
func disguisedOffsets(s string) map[int]bool {
	var at map[int]bool
	// mark judges one word, which begins at byte from.
	mark := func(word string, from int) {
		latin, foreign, alike := false, 0, 0
		for _, r := range word {
			switch {
			// Latin letters that look like no ASCII letter (ß, þ) make a word Latin, too.
			case r < 0x80 && unicode.IsLetter(r), unicode.Is(unicode.Latin, r) && !looksASCII(r):
				latin = true
			case unicode.IsLetter(r) && !isAccented(r):
				if foreign++; looksASCII(r) {
					alike++
				}
			}
		}
		// Ordinary words of another script contain look-alikes by chance; they are harmless unless Latin letters stand
		// among them or all of them look alike.
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
	// Digits and marks belong to the word around them: "раypal2" is one word.
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

// isAccented reports whether r is a letter of ASCII with marks, which readers tell from the bare letter.
func isAccented(r rune) bool {
	d := []rune(norm.NFD.String(string(r)))
	return len(d) > 1 && d[0] < 0x80
}
