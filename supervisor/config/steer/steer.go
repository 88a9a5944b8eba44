package steer

import (
	"strings"
	"unicode/utf8"
)

// Reason names what a variable of this name can change, as the end of "it changes …": "which code an interpreter loads". steers is false for
// a name that the table does not know, and for harmless ones under a prefix that steers (PYTHONUNBUFFERED). A name that
// no variable can have (an empty one, one with "=", NUL or a byte that is no UTF-8) steers: an entry NAME=x with the value
// y becomes the variable NAME with the value x=y.
func Reason(name string) (why string, steers bool) {
	if name == "" || strings.ContainsAny(name, "=\x00") || !utf8.ValidString(name) {
		return "another variable, since none has such a name", true
	}
	name = foldName(strings.TrimSpace(name))
	if harmless()[name] || strings.HasPrefix(name, "LC_") {
		return "", false
	}
	if why, steers = names()[name]; steers {
		return why, true
	}
	for _, r := range table {
		for _, p := range r.prefixes {
			if strings.HasPrefix(name, p) {
				return r.effect, true
			}
		}
		for _, s := range r.suffixes {
			if strings.HasSuffix(name, s) {
				return r.effect, true
			}
		}
	}
	return "", false
}

// Harmless reports whether a variable of this name may be set by a stranger, whatever the program is: it has to do with
// language, colour and how much is logged, and nothing with code, files, addresses or trust.
func Harmless(name string) bool {
	name = foldName(name)
	if rest, ok := strings.CutPrefix(name, "LC_"); ok {
		return isLetters(rest)
	}
	return harmless()[name]
}

// HarmlessValue reports whether the value of a harmless variable is one as well: programs look up a locale, a terminal and
// an encoding as a file of that name, so that a value with a slash, a backslash, a % or two dots leads elsewhere. TZ may
// have a slash, as Europe/Berlin has, and not begin with one, nor with the colon that begins a path. sudo has these rules.
func HarmlessValue(name, value string) bool {
	if len(value) > maxValue || strings.Contains(value, "..") {
		return false
	}
	zone := foldName(name) == "TZ"
	for i := range len(value) {
		switch c := value[i]; {
		case c < ' ', c > '~', c == '\\', c == '%', c == '$', c == '`':
			return false
		case c == '/' && (!zone || i == 0), c == ':' && zone && i == 0:
			return false
		}
	}
	return true
}

// maxValue bounds the value of a harmless variable in bytes.
const maxValue = 256

// foldName makes names equal that differ in case alone. Both ways are needed: some letters have one upper and two lower forms.
func foldName(name string) string { return strings.ToUpper(strings.ToLower(name)) }

func isLetters(s string) bool {
	return s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
}
