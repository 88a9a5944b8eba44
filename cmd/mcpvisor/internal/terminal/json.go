package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode/utf16"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// JSONSchema is the version of what --json prints: the member "schema" of every object at the top, of every element of an array
// at the top, and of every line of JSON lines. It rises when a key disappears or changes its meaning; a new key leaves it.
const JSONSchema = 1

// VersionedJSON encodes v with the version of its form. A value that is no object and no array of objects gets no version.
func VersionedJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	text := bytes.TrimSpace(b.Bytes())
	// The text is edited, not decoded again, because decoding into maps would sort the keys that the struct puts in order.
	if len(text) == 0 || text[0] != '[' {
		return WithSchema(text), nil
	}
	out := []byte{'['}
	for a := rawjson.ArrayAt(text, 0, 0); a.Next(); {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, WithSchema(a.Skip())...)
	}
	return append(out, ']'), nil
}

// WithSchema puts the member "schema" in front of the other members of an object, and returns anything else as it is.
func WithSchema(object []byte) []byte {
	if !rawjson.IsObject(object) {
		return object
	}
	rest := bytes.TrimSpace(object[1:])
	begin := fmt.Sprintf(`{"schema":%d,`, JSONSchema)
	if rest[0] == '}' { // an empty object has no member after the comma
		begin = strings.TrimSuffix(begin, ",")
	}
	return append([]byte(begin), rest...)
}

// PrintJSON writes v as indented JSON with its version, escaped as PrintIndented does.
func PrintJSON(w io.Writer, v any) error {
	text, err := VersionedJSON(v)
	return PrintIndented(w, text, err)
}

// PrintIndented writes JSON for people to read, unless err says that there is none. Characters that act on a terminal are
// written as \u escapes, which means the same to every JSON reader.
func PrintIndented(w io.Writer, text []byte, err error) error {
	var b bytes.Buffer
	if err == nil {
		err = json.Indent(&b, text, "", "  ")
	}
	if err != nil {
		return exit.With(exit.Failed, "the answer cannot be written as JSON: "+messages.Line(err.Error(), 200))
	}
	_, err = io.WriteString(w, EscapeUnsafe(b.String())+"\n")
	return err
}

// PrintJSONLine writes v as one line of JSON with its version, for output that programs read line by line.
func PrintJSONLine(w io.Writer, v any) error {
	text, err := VersionedJSON(v)
	if err != nil {
		return exit.With(exit.Failed, "the answer cannot be written as JSON: "+messages.Line(err.Error(), 200))
	}
	_, err = io.WriteString(w, EscapeUnsafe(string(text))+"\n")
	return err
}

// EscapeUnsafe replaces every character that [messages.Printable] would replace by a JSON \u escape, so that no information is
// lost. The result is still valid JSON, because outside of strings JSON has only ASCII and white space.
func EscapeUnsafe(s string) string {
	if messages.Printable(s) == s {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t' || r == '\r' || r == '\uFFFD' || messages.Printable(string(r)) == string(r):
			b.WriteRune(r)
		// JSON writes a character beyond the basic plane as two UTF-16 surrogates.
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}
