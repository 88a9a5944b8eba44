package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// HasArguments reports whether the hash of a record is that of these arguments, by the form of the record's version. It is
// false for a record without a hash, and for one of a newer version, whose form is not known.
func (r *Record) HasArguments(args []byte) bool {
	switch r.Version {
	case 1:
		return hexSum(versionOneForm(orEmptyObject(args))) == r.ArgsSHA256
	case Version:
		return hashOf(args) == r.ArgsSHA256
	}
	return false
}

// hashOf returns the hash of arguments in hexadecimal digits: that of their canonical form, or, for a text that has none, that
// of the text itself. It takes one allocation, because every recorded call pays for it.
func hashOf(args []byte) string {
	args = orEmptyObject(args)
	p := recordBuffers.Get().(*recordBuffer)
	defer p.release()
	form, err := rawjson.AppendCanonical(p.form[:0], args)
	p.form = form
	if err != nil {
		form = args
	}
	return hexSum(form)
}

// orEmptyObject returns the arguments, or an empty object for none, which is the same to a server.
func orEmptyObject(args []byte) []byte {
	if len(bytes.TrimSpace(args)) == 0 {
		return []byte("{}")
	}
	return args
}

func hexSum(form []byte) string {
	sum := sha256.Sum256(form)
	var digits [2 * sha256.Size]byte
	hex.Encode(digits[:], sum[:])
	return string(digits[:])
}

// versionOneForm returns the form that records of version 1 have the hash of. It differs from RFC 8785: names are in the order
// of their code points, of several equal ones the last counts, numbers stay as they were written, and bytes that are no text
// become U+FFFD.
func versionOneForm(args []byte) []byte {
	value, ok := decodeArguments(args)
	if !ok {
		return args
	}
	form, err := marshalValue(value)
	if err != nil {
		return args
	}
	// The encoder escapes two characters that the form has as they are. Each escape is copied whole, so that the second half
	// of an escaped backslash begins none.
	var out []byte
	for len(form) > 0 {
		n := 1
		switch {
		case bytes.HasPrefix(form, []byte(`\u2028`)):
			out, form = append(out, "\u2028"...), form[6:]
			continue
		case bytes.HasPrefix(form, []byte(`\u2029`)):
			out, form = append(out, "\u2029"...), form[6:]
			continue
		case form[0] == '\\':
			n = 2
		}
		out, form = append(out, form[:n]...), form[n:]
	}
	return out
}
