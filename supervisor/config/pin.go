package config

import (
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

// pinKey names a key of a file, beside its servers: what is done about changed tools of servers whose entry does not say it.
const pinKey = "pin"

// Pin holds what the files together say about changed tools.
type Pin struct {
	// Own counts for entries that do not have the key; empty if no file has it either.
	Own string
	// Least is the minimum for every server, against which an entry cannot lower its own word. The organisation's file and
	// files of the project set it.
	Least string
}

// pinOrder lists the words from the weakest to the strictest.
var pinOrder = []string{"", messages.PinOff, messages.PinWarn, messages.PinHold}

// readFilePin reads "off", "warn" or "hold". A file that was merely found in a project can make the handling stricter and not
// weaker. A word that cannot be read counts as hold: the author wanted a check, and a mistake must not remove it.
func (r *reader) readFilePin(v value, p *Parsed) {
	l, ok := literalOf(v.Value)
	word := ""
	if ok && l.Kind() == '"' {
		word = l.String()
	}
	switch {
	// pinOrder also contains the empty word, which no file may write.
	case word == "" || !slices.Contains(pinOrder, word):
		r.addProblem(r.posOf(v.Value), v.key, "it says what is done about tools that change, and is off, warn or hold",
			"until it can be read, changed tools are held back")
		word = messages.PinHold
	case word == messages.PinOff && merelyFound(p.Scope):
		r.addWarning(r.posOf(v.Value), v.key, "a project file cannot keep changed tools from being noticed; the key is dropped",
			"set it in your own file")
		return
	}
	// The key may stand twice in a file; the stricter word counts.
	p.Pin = stricterPin(p.Pin, word)
}

// stricterPin returns the stricter of two words.
func stricterPin(a, b string) string {
	if slices.Index(pinOrder, b) > slices.Index(pinOrder, a) {
		return b
	}
	return a
}

// pinOf joins the words of all files, which come lowest precedence first: the last of the person's own files sets Own, and the
// strictest of the organisation's and the project's sets Least.
func pinOf(files []Parsed) (pin Pin) {
	for _, f := range files {
		switch {
		case f.Pin == "":
		// Both can only raise the minimum, so that a project cannot weaken the organisation's word.
		case f.Scope == messages.ScopeManaged, merelyFound(f.Scope):
			pin.Least = stricterPin(pin.Least, f.Pin)
		default:
			pin.Own = f.Pin
		}
	}
	return pin
}
