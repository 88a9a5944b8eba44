package rawjson

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/mcpvisor/mcpvisor/messages"
)

// A NameError says that an object has two names of which only one can be meant.
type NameError struct {
	// Path is the place of the object, as a JSON Pointer (RFC 6901); empty for the outermost one.
	Path string
	// First and Second are the two names, in their order, without escapes. They are equal, or alike but for case.
	First, Second string
}

// Error implements error. The names are escaped and cut, because a stranger chose them.
func (e *NameError) Error() string {
	first, second := displayText(e.First), displayText(e.Second)
	if e.First == e.Second {
		return "the name " + first + " is there twice" + atPath(e.Path)
	}
	return "the names " + first + " and " + second + " differ in case only" + atPath(e.Path)
}

// An Error says why bytes cannot be read. It quotes no value of them, because one may be a secret.
type Error struct {
	// Path is the place of the fault, as a JSON Pointer; empty for the outermost value, and if the place is not known.
	Path string
	// Offset is the byte at which the fault begins; 0 if it is not known.
	Offset int64
	// Reason is a short text without a final full stop.
	Reason string

	// cause is the error of a type's own UnmarshalJSON. It is kept for errors.As only, because its text may quote the
	// value.
	cause error
}

// Unwrap returns the error of a type's own UnmarshalJSON, nil if that is not the reason.
func (e *Error) Unwrap() error { return e.cause }

// Error implements error: the reason, the path and the byte, as far as known.
func (e *Error) Error() string {
	text := e.Reason + atPath(e.Path)
	if e.Offset > 0 {
		text += " (byte " + strconv.FormatInt(e.Offset, 10) + ")"
	}
	return text
}

// maxShown bounds a name or a path in an error, in characters, because a stranger chose it.
const maxShown = 100

// displayText quotes and escapes a name or a path for an error.
func displayText(s string) string { return `"` + messages.Escaped(messages.Line(s, maxShown)) + `"` }

// atPath returns the end of a sentence about a place; empty for the outermost value.
func atPath(path string) string {
	if path == "" {
		return ""
	}
	return " at " + displayText(path)
}

// convertError translates an error of the library, whose texts quote values, into one of this package. An error of a
// type's own UnmarshalJSON stays reachable by Unwrap.
func convertError(err error) error {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		path := syntax.JSONPointer
		// The library gives the path of the second member, whose parent is the object.
		if errors.Is(syntax.Err, jsontext.ErrDuplicateName) {
			name := path.LastToken()
			return &NameError{Path: string(path.Parent()), First: name, Second: name}
		}
		return &Error{Path: string(path), Offset: syntax.ByteOffset, Reason: "it is not valid JSON"}
	}
	// The library's other errors have neither a path nor a kind.
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return &Error{Reason: "it is not valid JSON"}
	}
	e := &Error{Path: string(semantic.JSONPointer), Offset: semantic.ByteOffset, Reason: "the value does not fit"}
	// The sentence names the kinds, and not the value.
	switch {
	case errors.Is(semantic.Err, ErrUnknownName):
		e.Reason = "the name is not known"
	case semantic.JSONKind != 0 && semantic.GoType != nil:
		e.Reason = fmt.Sprintf("%s cannot be a %s", kindName(semantic.JSONKind), typeName(semantic.GoType.String()))
	}
	e.cause = semantic.Err
	return e
}

// kindName names a kind of JSON value for a sentence.
func kindName(k jsontext.Kind) string {
	switch k {
	case '"':
		return "a text"
	case '0':
		return "a number"
	case '{':
		return "an object"
	case '[':
		return "an array"
	default:
		return k.String()
	}
}

// typeName returns the name of a Go type without the asterisks of pointers.
func typeName(s string) string { return strings.TrimLeft(s, "*") }
