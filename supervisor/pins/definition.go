package pins

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strconv"

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

// DefinitionOf returns the definition of a tool, with its schemas in canonical form.
func DefinitionOf(t *messages.Tool) Definition {
	return Definition{t.Title, t.Description, canonicalJSON(t.InputSchema), canonicalJSON(t.OutputSchema), t.Annotations, otherMembers(t, canonicalJSON)}
}

// otherMembers returns the members of a definition that the fields of a Definition do not cover, in a canonical form. A member whose
// type is wrong counts too: its field is empty then, and the bytes would otherwise not be pinned.
func otherMembers(t *messages.Tool, canonical func(json.RawMessage) json.RawMessage) json.RawMessage {
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
		// The member is copied byte for byte; canonical sorts the object afterwards.
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
	return canonical(append(members, '}'))
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

// Hash returns the identity of a definition: "v2:" and the SHA-256 of its canonical form (RFC 8785) in hexadecimal digits.
func (d Definition) Hash() string {
	b, err := json.Marshal(d)
	if err == nil {
		b, err = rawjson.Canonical(b)
	}
	// This cannot occur, because canonicalJSON made the raw parts, and a message is not as deep as a form may be.
	if err != nil {
		return ""
	}
	return hashPrefix + hexSum(b)
}

// hashPrefix begins each hash but those of version 1 of the file.
const hashPrefix = "v2:"

func hexSum(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// canonicalJSON returns JSON in the canonical form of RFC 8785, so that equal schemas have equal bytes. A text without one, such as
// one with a doubled name, is kept whole, as a string: programs differ in what they read of it.
func canonicalJSON(raw json.RawMessage) json.RawMessage {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	if !hasInexactNumber(raw) {
		if form, err := rawjson.Canonical(raw); err == nil {
			return form
		}
	}
	return rawjson.AppendText(nil, bytes.TrimSpace(raw))
}

// hasInexactNumber reports whether the canonical form could give two different numbers the same text: a double holds every number of
// 15 digits that is neither very large nor very small. A model reads the digits, and a server must not change them unnoticed.
func hasInexactNumber(raw []byte) bool {
	for i, end := rawjson.NextNumber(raw, 0); i >= 0; i, end = rawjson.NextNumber(raw, end) {
		digits, exponent, _ := bytes.Cut(bytes.ToLower(raw[i:end]), []byte("e"))
		power, err := strconv.Atoi(string(exponent))
		// The point counts as a digit.
		if len(digits) > 24 || len(bytes.TrimLeft(digits, "-0.")) > 15 || len(exponent) > 0 && (err != nil || max(power, -power) > 270) {
			return true
		}
	}
	return false
}
