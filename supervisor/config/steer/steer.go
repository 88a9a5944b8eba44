package steer

import (
	"strings"
	"unicode/utf8"
)

// Reason returns what a variable of this name can change, as the end of a sentence "it changes …": "which code an
// interpreter loads". steers is false for a name that the table does not know, and for harmless names under a prefix
// that steers (PYTHONUNBUFFERED). A name that no variable can have (an empty one, one with "=", NUL or a byte that is
// no UTF-8) steers: an entry NAME=x with the value y becomes the variable NAME with the value x=y.
func Reason(name string) (why string, steers bool) {
	if name == "" || strings.ContainsAny(name, "=\x00") || !utf8.ValidString(name) {
		return "another variable, since none has such a name", true
	}
	name = foldName(strings.TrimSpace(name))
	// The exceptions come first, because the prefixes of the table cover some of them.
	if harmless()[name] || strings.HasPrefix(name, "LC_") {
		return "", false
	}
	if why, steers = names()[name]; steers {
		return why, true
	}
	// The families come after the single names, whose reason is more exact.
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

// Harmless reports whether a stranger may set a variable of this name for any program: it concerns language, colour,
// logging or the use of processors, and not code, files, addresses or trust. The value has to pass [HarmlessValue],
// too.
func Harmless(name string) bool {
	name = foldName(name)
	if rest, ok := strings.CutPrefix(name, "LC_"); ok {
		return isLetters(rest)
	}
	return harmless()[name]
}

// HarmlessValue reports whether the value of a harmless variable is safe as well: programs look up a locale, a terminal
// and an encoding as a file of that name, so that a value with a slash, a backslash, a % or two dots leads elsewhere.
// TZ may have a slash, as Europe/Berlin has, but may not begin with one, nor with the colon that begins a path. sudo
// has these rules.
func HarmlessValue(name, value string) bool {
	if len(value) > maxValue || strings.Contains(value, "..") {
		return false
	}
	zone := foldName(name) == "TZ"
	for i := range len(value) {
		switch c := value[i]; {
		// Only printable ASCII passes; $ and ` act in a shell.
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

// foldName returns a name for comparison without regard to case. It converts both ways, because some letters have one
// upper and two lower forms.
func foldName(name string) string { return strings.ToUpper(strings.ToLower(name)) }

// isLetters reports whether s consists of ASCII capitals and underscores, as the categories of a locale do.
func isLetters(s string) bool {
	return s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
}
