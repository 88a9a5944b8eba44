package audit

import (
	"bytes"
	"encoding/json"
)

// Arguments says which form of a call's arguments is recorded.
type Arguments string

const (
	// Hash records the SHA-256 of the arguments in the canonical form of RFC 8785, in which 1.0 and 1 are the same. Arguments that
	// have no such form, because two names are equal or they are no JSON, are hashed as they were sent. It shows whether two calls
	// were the same, and whether a call had certain arguments: see [Record.HasArguments]. This is the default.
	Hash Arguments = "hash"
	// Redacted records the hash, and the arguments without the secrets that the server was given, without values that have the
	// name of a credential or look like a token, and with long texts and lists cut.
	Redacted Arguments = "redacted"
	// None records only the length of the arguments.
	None Arguments = "none"
	// Full records the hash, and the arguments with nothing removed but the secrets that the server was given. A model may put any
	// text that it has read into arguments.
	Full Arguments = "full"
)

const (
	// maxValueBytes bounds the bytes of a text that Redacted keeps, maxElements the elements of a list or an object.
	maxValueBytes, maxElements = 200, 50
	// maxRedacted and maxFull bound the arguments of a record, in bytes; longer ones are left out.
	maxRedacted, maxFull = 4 << 10, 1 << 20
	// maxLevels bounds the levels of nesting that are searched; deeper values are left out whole.
	maxLevels = 64
)

// AddTo adds the arguments to the record in the chosen form. hide removes the server's secrets from a text; only Redacted and
// Full need it.
func (a Arguments) AddTo(r *Record, args json.RawMessage, hide func(string) string) {
	// The length is recorded in every form, as it reveals nothing.
	r.Sent = len(args)
	if a == None {
		return
	}
	r.ArgsSHA256 = hashOf(args)
	args = orEmptyObject(args)
	most := maxFull
	// Decoding costs more than hashing, so it is done only where the arguments are shown.
	var value any
	if a == Redacted || a == Full {
		value, _ = decodeArguments(args)
	}
	switch {
	// Only the hash is recorded.
	case a != Redacted && a != Full:
		return
	// A text that is no JSON cannot be redacted with certainty, so it is left out.
	case value == nil:
		r.Cut = true
		return
	case a == Redacted:
		most = maxRedacted
	}
	out, err := marshalValue(redactor{redact: hide, whole: a == Full}.redactValue("", value, 0))
	// A record that is too long would push many others out of the queue.
	if err != nil || len(out) > most {
		r.Cut = true
		return
	}
	r.Args = out
}

// decodeArguments returns the decoded arguments; ok is false if they are no JSON, or more than one value.
func decodeArguments(args json.RawMessage) (value any, ok bool) {
	// Numbers stay as they were written: a large one would lose digits as a float.
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	if d.Decode(&value) != nil || d.InputOffset() != int64(len(bytes.TrimRight(args, " \t\r\n"))) {
		return nil, false
	}
	return value, true
}

// marshalValue writes JSON without the escapes for HTML, which would make it hard to read.
func marshalValue(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}
