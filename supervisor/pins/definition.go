package pins

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// Definition is the pinned content of a tool's definition: all of it but the name.
type Definition struct {
	Title        string                `json:"title,omitempty"`
	Description  string                `json:"description,omitempty"`
	InputSchema  json.RawMessage       `json:"inputSchema,omitempty"`
	OutputSchema json.RawMessage       `json:"outputSchema,omitempty"`
	Annotations  *messages.Annotations `json:"annotations,omitempty"`
	// Rest has the members of the server's definition that the fields above do not cover: icons, execution, _meta, unknown hints, and
	// all others, because some program may read them. nil if there are none.
	Rest json.RawMessage `json:"rest,omitempty"`
}

// MarshalJSON writes the form that the file has and that is hashed. It names the hints as the first versions did, because a
// definition that was approved under those names must not look changed.
func (d Definition) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Title        string                      `json:"title,omitempty"`
		Description  string                      `json:"description,omitempty"`
		InputSchema  json.RawMessage             `json:"inputSchema,omitempty"`
		OutputSchema json.RawMessage             `json:"outputSchema,omitempty"`
		Annotations  *messages.StatusAnnotations `json:"annotations,omitempty"`
		Rest         json.RawMessage             `json:"rest,omitempty"`
	}{d.Title, d.Description, d.InputSchema, d.OutputSchema, (*messages.StatusAnnotations)(d.Annotations), d.Rest})
}

// DefinitionOf returns the definition of a tool, with its schemas in canonical form.
func DefinitionOf(t *messages.Tool) Definition {
	return Definition{t.Title, t.Description, canonicalJSON(t.InputSchema), canonicalJSON(t.OutputSchema), t.Annotations, otherMembers(t)}
}

// otherMembers returns the members of a definition that the fields of a Definition do not cover. A member whose type is wrong counts
// too: its field is empty then, and the bytes would otherwise not be pinned.
func otherMembers(t *messages.Tool) json.RawMessage {
	if !rawjson.IsObject(t.Raw) {
		return nil
	}
	var members []byte
	add := func(name, value []byte) {
		if members == nil {
			members = append(members, '{')
		} else {
			members = append(members, ',')
		}
		// The member is copied byte for byte; canonicalJSON sorts the object afterwards.
		members = append(rawjson.AppendText(members, name), ':')
		members = append(members, value...)
	}
	// The bytes of the server are walked, so that members which no version of this program knows are pinned too.
	for o := rawjson.ObjectAt(t.Raw, 0, 0); o.Next(); {
		value := o.Skip()
		switch string(o.Name) {
		case "name":
			continue // the name is the key of the pin
		case "title", "description":
			if rawjson.IsText(value) || rawjson.IsNull(value) {
				continue
			}
		case "inputSchema", "outputSchema":
			if rawjson.IsObject(value) || rawjson.IsNull(value) {
				continue
			}
		case "annotations":
			if value = unknownHints(value); value == nil {
				continue
			}
		}
		add(o.Name, value)
	}
	if members == nil {
		return nil
	}
	return canonicalJSON(append(members, '}'))
}

// unknownHints returns the members of annotations that messages.Annotations does not have; nil if there are none.
func unknownHints(value []byte) []byte {
	// Annotations of another type are pinned as they are.
	if !rawjson.IsObject(value) {
		if rawjson.IsNull(value) {
			return nil
		}
		return value
	}
	var members []byte
	for o := rawjson.ObjectAt(value, 0, 0); o.Next(); {
		// A known hint with a value of the right type is covered by its field.
		hint := o.Skip()
		switch string(o.Name) {
		case "title":
			if rawjson.IsText(hint) || rawjson.IsNull(hint) {
				continue
			}
		case "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint":
			if rawjson.Truth(hint) != nil || rawjson.IsNull(hint) {
				continue
			}
		}
		if members == nil {
			members = append(members, '{')
		} else {
			members = append(members, ',')
		}
		members = append(append(rawjson.AppendText(members, o.Name), ':'), hint...)
	}
	if members == nil {
		return nil
	}
	return append(members, '}')
}

// Hash returns the identity of a definition.
func (d Definition) Hash() string {
	// The form is canonical: fixed fields, and raw parts with sorted keys.
	b, err := json.Marshal(d)
	// This cannot occur, because canonicalJSON made the raw parts.
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// canonicalJSON returns JSON without white space, with sorted keys and numbers as they were written, so that equal schemas have equal
// bytes. A text with a doubled name is kept whole, as a string: programs differ in which of the two they read.
func canonicalJSON(raw json.RawMessage) json.RawMessage {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	// Decoding would keep one of the doubled members, and a server could change the other.
	if rawjson.CheckDoubled(raw) != nil {
		b, _ := json.Marshal(string(raw)) // a text always encodes
		return b
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	// A number keeps its digits: 1.0 and 1 are different texts to some readers.
	d.UseNumber()
	var v any
	if d.Decode(&v) == nil {
		if b, err := json.Marshal(v); err == nil {
			return b
		}
	}
	b, _ := json.Marshal(string(raw)) // a text always encodes
	return b
}
