package config

import (
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

// pinKey is a key of a file, beside its servers: what is done about changed tools of servers whose entry says nothing.
const pinKey = "pin"

// Pin holds what the files together say about changed tools.
type Pin struct {
	// Own counts where an entry says nothing; empty if no file says anything.
	Own string
	// Least is the least that is done, whatever an entry says: the organisation's word, and what a project asks for.
	Least string
}

// pinOrder orders the words by what is done.
var pinOrder = []string{"", messages.PinOff, messages.PinWarn, messages.PinHold}

// readFilePin reads "off", "warn" or "hold". A file that was merely found in a project can ask for more and not for less. A word
// that cannot be read holds: a mistake in it must not let through what it was to keep.
func (r *reader) readFilePin(v value, p *Parsed) {
	l, ok := literalOf(v.Value)
	word := ""
	if ok && l.Kind() == '"' {
		word = l.String()
	}
	switch {
	case word == "" || !slices.Contains(pinOrder, word):
		r.addProblem(r.posOf(v.Value), v.key, "it says what is done about tools that change, and is off, warn or hold",
			"until it can be read, changed tools are held back")
		word = messages.PinHold
	case word == messages.PinOff && merelyFound(p.Scope):
		r.addWarning(r.posOf(v.Value), v.key, "a project file cannot keep changed tools from being noticed; the key is dropped",
			"set it in your own file")
		return
	}
	p.Pin = stricterPin(p.Pin, word)
}

func stricterPin(a, b string) string {
	if slices.Index(pinOrder, b) > slices.Index(pinOrder, a) {
		return b
	}
	return a
}

// pinOf joins the words of all files, lowest precedence first: of the person's own files the nearest counts, the organisation's
// and the project's are the least.
func pinOf(files []Parsed) (pin Pin) {
	for _, f := range files {
		switch {
		case f.Pin == "":
		case f.Scope == messages.ScopeManaged, merelyFound(f.Scope):
			pin.Least = stricterPin(pin.Least, f.Pin)
		default:
			pin.Own = f.Pin
		}
	}
	return pin
}
