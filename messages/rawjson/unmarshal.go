package rawjson

import (
	"reflect"

	"github.com/go-json-experiment/json"
)

// Unmarshal fills v, a pointer, with the value in data. It works like Unmarshal of encoding/json, with the same tags,
// and differs in the points that a stranger could abuse:
//
//   - Names count as they are written: "Type" is not the field that has the tag type.
//   - An object with a doubled name is refused with a [*NameError], also in parts that no field takes.
//   - Bytes that are no UTF-8 and lone surrogates are refused.
//   - The first fault ends the reading: fields after it are not filled.
//   - A json.Number cannot be filled; a json.RawMessage gets null as it stands.
//
// All other errors are, or wrap, an [*Error].
func Unmarshal(data []byte, v any) error {
	// The defaults of version 2 of encoding/json are the strict rules above.
	if err := json.Unmarshal(data, v); err != nil {
		return convertError(err)
	}
	return nil
}

// UnmarshalStrict does the work of [Unmarshal] for data that another program reads too, which may take names of another
// case for the intended ones: it also refuses data in which a name differs from that of a field in case only. v must be
// a pointer to a zero value.
func UnmarshalStrict(data []byte, v any) error {
	if err := Unmarshal(data, v); err != nil {
		return err
	}
	// Reading once more without regard to case gives another result exactly if such a name is in the data.
	other := reflect.New(reflect.TypeOf(v).Elem())
	if json.Unmarshal(data, other.Interface(), json.MatchCaseInsensitiveNames(true)) != nil ||
		!reflect.DeepEqual(v, other.Interface()) {
		return &Error{Reason: "a name differs in case only from one that is known"}
	}
	return nil
}

// ErrUnknownName is wrapped by the error of [UnmarshalKnown] about a name for which no field is there.
var ErrUnknownName = json.ErrUnknownName

// UnmarshalKnown does the work of [Unmarshal] for data whose form is known: it also refuses a name for which v has no
// field, with an [*Error] that wraps [ErrUnknownName].
func UnmarshalKnown(data []byte, v any) error {
	if err := json.Unmarshal(data, v, json.RejectUnknownMembers(true)); err != nil {
		return convertError(err)
	}
	return nil
}
