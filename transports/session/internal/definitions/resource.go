package definitions

import (
	"slices"
	"strconv"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
)

// ReadResource reads one definition. A member that a resource can be used without is dropped silently if it has a
// wrong type; a URI that cannot be used gives a reason.
func ReadResource(raw []byte) (r messages.Resource, uri, reason string) {
	if !rawjson.IsObject(raw) {
		return r, "", "the definition is not an object"
	}
	// Raw stays whole, so that members which are not read here reach the program that asks for the resource.
	r.Raw = raw
	var address []byte
	m := rawjson.ObjectAt(raw, 0, 0)
	for m.Next() {
		value := m.Skip()
		switch string(m.Name) {
		case "uri":
			address = value
		case "name":
			r.Name, _ = rawjson.Text(value)
		case "title":
			r.Title, _ = rawjson.Text(value)
		case "description":
			r.Description, _ = rawjson.Text(value)
		case "mimeType":
			r.MIMEType, _ = rawjson.Text(value)
		// nil says that the server gave no size; 0 is one.
		case "size":
			r.Size = jsonrpc.SizeOf(value)
		case "icons":
			r.Icons = readIcons(value)
		case "annotations":
			r.Annotations = readResourceAnnotations(value)
		}
	}
	// The size is checked last: a definition without a usable URI is reported as that.
	r.URI, reason = readKey(address, "URI", MaxURI)
	return r, r.URI, tooLarge(raw, reason)
}

// ReadTemplate reads one resource template in the same way.
func ReadTemplate(raw []byte) (t messages.ResourceTemplate, uri, reason string) {
	if !rawjson.IsObject(raw) {
		return t, "", "the definition is not an object"
	}
	// The template is kept as text; whether a URI fits it, the supervisor decides when one is read.
	t.Raw = raw
	var address []byte
	m := rawjson.ObjectAt(raw, 0, 0)
	for m.Next() {
		value := m.Skip()
		switch string(m.Name) {
		case "uriTemplate":
			address = value
		case "name":
			t.Name, _ = rawjson.Text(value)
		case "title":
			t.Title, _ = rawjson.Text(value)
		case "description":
			t.Description, _ = rawjson.Text(value)
		case "mimeType":
			t.MIMEType, _ = rawjson.Text(value)
		case "icons":
			t.Icons = readIcons(value)
		case "annotations":
			t.Annotations = readResourceAnnotations(value)
		}
	}
	t.URITemplate, reason = readKey(address, "URI template", MaxURI)
	return t, t.URITemplate, tooLarge(raw, reason)
}

// readResourceAnnotations reads the annotations of a resource; nil if they hold nothing that is known.
//
// 2025-11-25, Annotations: audience has the "Valid values "user" and "assistant"", priority is a "number from 0.0 to
// 1.0".
func readResourceAnnotations(raw []byte) *messages.ResourceAnnotations {
	if !rawjson.IsObject(raw) {
		return nil
	}
	var a messages.ResourceAnnotations
	m := rawjson.ObjectAt(raw, 0, 0)
	for m.Next() {
		value := m.Skip()
		switch string(m.Name) {
		case "audience":
			// Values that are not known are dropped and the known ones kept: a later version may add roles.
			a.Audience = slices.DeleteFunc(jsonrpc.TextsOf(value, 16), func(role string) bool {
				return role != "user" && role != "assistant"
			})
		case "priority":
			// If the member stands twice, the last one counts, also if it is invalid.
			a.Priority = nil
			if p, err := strconv.ParseFloat(string(value), 64); err == nil && p >= 0 && p <= 1 {
				a.Priority = &p
			}
		case "lastModified":
			a.LastModified, _ = rawjson.Text(value)
		}
	}
	// A caller that finds nil need not look at the fields.
	if len(a.Audience) == 0 && a.Priority == nil && a.LastModified == "" {
		return nil
	}
	return &a
}
