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
	// Path is that of the object, as a JSON Pointer (RFC 6901); empty for the outermost one.
	Path string
	// First and Second are the two names, in their order, without escapes. They are equal, or alike but for case.
	First, Second string
}

func (e *NameError) Error() string {
	first, second := displayText(e.First), displayText(e.Second)
	if e.First == e.Second {
		return "the name " + first + " is there twice" + atPath(e.Path)
	}
	return "the names " + first + " and " + second + " differ in case only" + atPath(e.Path)
}

// An Error says why bytes cannot be read. It quotes no value of them: one may be a secret.
type Error struct {
	// Path is where, as a JSON Pointer; empty for the outermost value, and where it is not known.
	Path string
	// Offset is where the fault begins, in bytes; 0 if it is not known.
	Offset int64
	// Reason is a short text.
	Reason string

	cause error // what an UnmarshalJSON said; its text may quote the value
}

// Unwrap is the error of a type's own UnmarshalJSON, nil if that is not the reason.
func (e *Error) Unwrap() error { return e.cause }

func (e *Error) Error() string {
	text := e.Reason + atPath(e.Path)
	if e.Offset > 0 {
		text += " (byte " + strconv.FormatInt(e.Offset, 10) + ")"
	}
	return text
}

// maxShown bounds a name or a path in a text, in runes: a stranger chose it.
const maxShown = 100

func displayText(s string) string { return `"` + messages.Escaped(messages.Line(s, maxShown)) + `"` }

func atPath(path string) string {
	if path == "" {
		return ""
	}
	return " at " + displayText(path)
}

// convertError is the error of this package for one of the library's. Those of a type's own UnmarshalJSON are kept.
func convertError(err error) error {
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		path := syntax.JSONPointer
		if errors.Is(syntax.Err, jsontext.ErrDuplicateName) {
			name := path.LastToken()
			return &NameError{Path: string(path.Parent()), First: name, Second: name}
		}
		return &Error{Path: string(path), Offset: syntax.ByteOffset, Reason: "it is not valid JSON"}
	}
	var semantic *json.SemanticError
	if !errors.As(err, &semantic) {
		return &Error{Reason: "it is not valid JSON"}
	}
	e := &Error{Path: string(semantic.JSONPointer), Offset: semantic.ByteOffset, Reason: "the value does not fit"}
	if semantic.JSONKind != 0 && semantic.GoType != nil {
		e.Reason = fmt.Sprintf("%s cannot be a %s", kindName(semantic.JSONKind), typeName(semantic.GoType.String()))
	}
	e.cause = semantic.Err
	return e
}

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

func typeName(s string) string { return strings.TrimLeft(s, "*") }
