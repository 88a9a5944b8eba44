package supervisor

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// The functions of this file read the parts of a result by walking: by exact names, the last of doubled ones, and without
// stopping at a member of another type than usual. A result may have texts that are no Unicode, so Unmarshal is too strict.

// trimSpace cuts the white space before a value: the readers of package rawjson expect the value at the first byte.
func trimSpace(raw json.RawMessage) []byte { return bytes.TrimLeft(raw, " \t\r\n") }

// partsOf returns the elements of a list in a result; none if the result has no such list. It fails for a result that is no JSON
// object and for a member that is no list.
func partsOf(raw json.RawMessage, name string) ([]json.RawMessage, error) {
	raw = trimSpace(raw)
	if !rawjson.IsObject(raw) || !rawjson.Valid(raw) {
		return nil, errors.New("it is no JSON object")
	}
	list := rawjson.Member(raw, name)
	if rawjson.IsNull(list) {
		return nil, nil
	}
	if !rawjson.IsArray(list) {
		return nil, errors.New(name + " is no list")
	}
	// An empty list is a list all the same: the result is not nil.
	parts := []json.RawMessage{}
	for a := rawjson.ArrayAt(list, 0, 0); a.Next(); {
		parts = append(parts, a.Skip())
	}
	return parts, nil
}

// onlyText returns the text of a result whose content is one part of text, which most are, read in one walk; not ok for every
// other result, whose parts are then read one by one.
func onlyText(raw json.RawMessage) (text string, ok bool) {
	// A walk that stops anywhere falls back to the general reader, which gives the error.
	raw = trimSpace(raw)
	if !rawjson.IsObject(raw) {
		return "", false
	}
	// Of several members named content the last one counts, as for every reader of this package.
	var found []byte
	o := rawjson.ObjectAt(raw, 0, 0)
	for o.Next() {
		if string(o.Name) != "content" {
			o.Skip()
			continue
		}
		var end int
		if found, end = textPart(raw, o.Position(), o.Depth()); end < 0 {
			return "", false
		}
		o.MoveTo(end)
	}
	// Text behind the object means that the result is no single JSON value.
	if end := o.End(); end < 0 || rawjson.SkipSpace(raw, end) != len(raw) {
		return "", false
	}
	return rawjson.Text(found)
}

// textPart returns the text of a list at raw[i] that has exactly one part of type text, and the position behind the list; -1
// for every other value.
func textPart(raw []byte, i, depth int) (text []byte, end int) {
	if i < 0 || i >= len(raw) || raw[i] != '[' {
		return nil, -1
	}
	list := rawjson.ArrayAt(raw, i, depth)
	if !list.Next() || raw[list.Position()] != '{' {
		return nil, -1
	}
	// A part without a type, or of another one, is not text even if it has a member text.
	typed := false
	part := rawjson.ObjectAt(raw, list.Position(), list.Depth())
	for part.Next() {
		switch value := part.Skip(); string(part.Name) {
		case "type":
			typed = string(value) == `"text"`
		case "text":
			text = value
		}
	}
	list.MoveTo(part.End())
	if !typed || list.Next() {
		return nil, -1
	}
	return text, list.End()
}

// contentOf reads one part of a result. A part that is no object keeps only its bytes in Raw.
func contentOf(raw json.RawMessage) Content {
	c := Content{Raw: raw}
	if !rawjson.IsObject(raw) {
		return c
	}
	// A value of an unexpected type leaves its field empty; Raw still has it.
	for o := rawjson.ObjectAt(raw, 0, 0); o.Next(); {
		switch value := o.Skip(); string(o.Name) {
		case "type":
			c.Type, _ = rawjson.Text(value)
		case "text":
			c.Text, _ = rawjson.Text(value)
		case "data":
			c.Data, _ = rawjson.Text(value)
		case "mimeType":
			c.MIMEType, _ = rawjson.Text(value)
		case "uri":
			c.URI, _ = rawjson.Text(value)
		case "name":
			c.Name, _ = rawjson.Text(value)
		case "resource":
			c.Resource = value
		}
	}
	return c
}

// resourceContentOf reads one content of a resource, by the same rules as contentOf.
func resourceContentOf(raw json.RawMessage) ResourceContent {
	c := ResourceContent{Raw: raw}
	if !rawjson.IsObject(raw) {
		return c
	}
	for o := rawjson.ObjectAt(raw, 0, 0); o.Next(); {
		switch value := o.Skip(); string(o.Name) {
		case "uri":
			c.URI, _ = rawjson.Text(value)
		case "mimeType":
			c.MIMEType, _ = rawjson.Text(value)
		case "text":
			c.Text, _ = rawjson.Text(value)
		case "blob":
			c.Blob, _ = rawjson.Text(value)
		}
	}
	return c
}
