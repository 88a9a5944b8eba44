package session

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports"
)

// mirrorKey is the keyword by which a tool's input schema asks for a parameter in a header.
const mirrorKey = "x-mcp-header"

// maxMirrorDepth is how deep schemas may stand in schemas to be read for annotations: each level reads again what is below
// it. No real schema comes near.
const maxMirrorDepth = 64

// mirror is what of a call's arguments goes into headers as well. The zero value mirrors nothing.
type mirror []mirrored

// mirrored is one parameter: the chain of property names that leads to it, and its header.
type mirrored struct {
	path   []string
	header string
}

// mirrorOf reads a tool's input schema. wrong says why the tool may not be offered over HTTP, empty if it may.
//
// 2026-07-28, Custom Headers from Tool Parameters: "While the use of x-mcp-header is optional for servers, clients
// MUST support this feature. … Clients using the Streamable HTTP transport MUST reject tool definitions where any
// x-mcp-header value violates these constraints. Rejection means the client MUST exclude the invalid tool from the
// result of tools/list." Other transports may ignore the annotation.
func mirrorOf(schema []byte) (m mirror, wrong string) {
	if !bytes.Contains(schema, []byte(mirrorKey)) && !bytes.Contains(schema, []byte(`\u`)) {
		return nil, "" // almost every schema there is
	}
	r := mirrorReader{names: make(map[string]struct{})}
	r.schema(schema, nil, true)
	if r.wrong != "" {
		return nil, r.wrong
	}
	return r.found, ""
}

// mirrors reports whether this conversation mirrors arguments: the modern era does, over HTTP.
func (s *Session) mirrors() bool {
	return s.modern.Load() != nil && s.overHTTP()
}

// overHTTP reports whether each request is an exchange of its own.
func (s *Session) overHTTP() bool { return s.kind == messages.HTTP || s.kind == messages.ClaudeAIProxy }

// mirrorFor is the mirror of a tool, as the newest list has it.
func (s *Session) mirrorFor(tool string) mirror {
	if m := s.mirrored.Load(); m != nil {
		return (*m)[tool]
	}
	return nil
}

// mirrorAnew gives a call that was refused for its headers those that it needs by a new list, and reports whether they
// are other ones. Of many such calls one lists, and the others look what it found.
//
// 2026-07-28, Client Behavior: "If the server rejects a request with a HeaderMismatch error because required Mcp-Param-*
// headers are missing or do not match the body, the client SHOULD call tools/list to check for changes to the tool's
// inputSchema, then retry the original request with the appropriate headers."
func (s *Session) mirrorAnew(ctx context.Context, r *request) bool {
	if !s.mirrors() {
		return false
	}
	if !s.relisting.take(ctx) {
		return false
	}
	defer s.relisting.give()
	before := r.header
	if fits := s.mirrorTo(r); !fits || !maps.Equal(before, r.header) {
		return fits
	}
	if _, err := s.ListTools(ctx); err != nil {
		return false // the refusal of the call says more
	}
	s.toolsChanged() // whoever holds the old list has not heard of it
	return s.mirrorTo(r) && !maps.Equal(before, r.header)
}

// mirrorTo gives a request the headers of the newest list. It reports false if they are too long to be sent.
func (s *Session) mirrorTo(r *request) bool {
	header, long := s.mirrorFor(r.name).header(r.args)
	if long != nil {
		return false
	}
	r.header = header
	return true
}

// mirrorReader walks over a schema.
type mirrorReader struct {
	found mirror
	names map[string]struct{} // in lower case
	depth int                 // of the schema that is being read
	wrong string              // the first fault
}

func (r *mirrorReader) fault(format string, args ...any) {
	if r.wrong == "" {
		r.wrong = mirrorKey + " " + fmt.Sprintf(format, args...)
	}
}

// What keywords of JSON Schema hold. Everything else is data, or unknown, and holds no schema.
var (
	holdSchema = words("items additionalItems contains additionalProperties propertyNames not if then else " +
		"unevaluatedItems unevaluatedProperties contentSchema")
	holdSchemas = words("items prefixItems allOf anyOf oneOf")
	holdNamed   = words("patternProperties $defs definitions dependentSchemas dependencies")
)

func words(s string) map[string]bool {
	set := make(map[string]bool)
	for w := range strings.FieldsSeq(s) {
		set[w] = true
	}
	return set
}

// schema reads one schema. reachable says that path leads to it through properties alone; path is empty for the root.
//
// "The chain MUST NOT pass through items (or any other array keyword), composition keywords (oneOf, anyOf, allOf,
// not), conditional keywords (if/then/else), or $ref. … An x-mcp-header annotation anywhere else makes the annotation
// — and thus the tool definition — invalid."
func (r *mirrorReader) schema(raw []byte, path []string, reachable bool) {
	if !rawjson.IsObject(raw) || r.wrong != "" {
		return
	}
	if r.depth >= maxMirrorDepth {
		if bytes.Contains(raw, []byte(mirrorKey)) {
			r.fault("stands too deep")
		}
		return
	}
	r.depth++
	defer func() { r.depth-- }()
	var kind, name []byte
	m := rawjson.ObjectAt(raw, 0, 0)
	for m.Next() {
		value, key := m.Skip(), string(m.Name)
		switch {
		case key == mirrorKey:
			name = value
		case key == "type":
			kind = value
		case key == "properties":
			r.named(value, path, reachable)
		case holdNamed[key]:
			r.named(value, nil, false)
		case holdSchema[key] && rawjson.IsObject(value):
			r.schema(value, nil, false)
		case holdSchemas[key] && rawjson.IsArray(value):
			list := rawjson.ArrayAt(value, 0, 0)
			for list.Next() {
				r.schema(list.Skip(), nil, false)
			}
		}
	}
	if name != nil {
		r.annotation(name, kind, path, reachable)
	}
}

// named reads an object whose members are schemas.
func (r *mirrorReader) named(raw []byte, path []string, reachable bool) {
	if !rawjson.IsObject(raw) {
		return
	}
	m := rawjson.ObjectAt(raw, 0, 0)
	for m.Next() {
		key := string(m.Name)
		r.schema(m.Skip(), append(slices.Clip(path), key), reachable)
	}
}

// annotation judges one annotation.
func (r *mirrorReader) annotation(raw, kind []byte, path []string, reachable bool) {
	name, ok := rawjson.Text(raw)
	lower := strings.ToLower(name)
	_, twice := r.names[lower]
	switch {
	case !reachable || len(path) == 0:
		r.fault("stands where no chain of properties leads")
	case !ok:
		r.fault("of %s is not a string", messages.Line(strings.Join(path, "."), 60))
	case name == "":
		r.fault("of %s is empty", messages.Line(strings.Join(path, "."), 60))
	case !isToken(name):
		r.fault("%s cannot be part of the name of a header", strconv.Quote(messages.Line(name, 60)))
	case !mirrorable(kind):
		r.fault("%s is on a parameter that is no string, integer or boolean", messages.Line(name, 60))
	case twice:
		r.fault("%s stands twice", messages.Line(name, 60))
	default:
		r.names[lower] = struct{}{}
		r.found = append(r.found, mirrored{path, "Mcp-Param-" + name})
	}
}

// isToken reports whether s is an HTTP token (RFC 9110, 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'z') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// mirrorable reports whether a type is one of those that have headers: "primitive types (integer, string, boolean).
// Parameters with type number are not permitted." A parameter may also be null: "Parameter value is null: Client MUST
// omit the header".
func mirrorable(kind []byte) bool {
	if text, ok := rawjson.Text(kind); ok {
		return text == "string" || text == "integer" || text == "boolean"
	}
	if !rawjson.IsArray(kind) {
		return false
	}
	some := false
	list := rawjson.ArrayAt(kind, 0, 0)
	for list.Next() {
		value := list.Skip()
		if text, _ := rawjson.Text(value); text != "null" {
			if !mirrorable(value) || rawjson.IsArray(value) {
				return false
			}
			some = true
		}
	}
	return some
}

// maxMirrored bounds the headers of one call together, in bytes. Servers close the connection over larger ones without
// a word (8 KiB is the usual limit of all headers of a request), and whether the tool has run is not known then.
const maxMirrored = 8 << 10

// header is what a call with these arguments needs: encoded values by their headers' names, nil for none. args is a
// JSON object, or empty. long is the error of a call whose headers are over maxMirrored, which is not sent.
//
// "Header extraction is defined as reading the instance value at the exact property path of the annotated property …
// If no value is present at that path in the call arguments, the header is omitted."
func (m mirror) header(args []byte) (h map[string]string, long *messages.Error) {
	size := 0
	for _, p := range m {
		value := args
		for _, name := range p.path {
			value = memberAt(value, name)
		}
		text, ok := mirroredText(value)
		if !ok {
			continue
		}
		if h == nil {
			h = make(map[string]string, len(m))
		}
		encoded := transports.HeaderValue(text)
		if size += len(p.header) + len(encoded); size > maxMirrored {
			return nil, &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid,
				Text: fmt.Sprintf("the argument %q must go into an HTTP header of the request, and the headers of one call may hold at most 8 KiB",
					messages.Line(strings.Join(p.path, "."), 100)),
				Fix: "give a shorter value"}
		}
		h[p.header] = encoded
	}
	return h, nil
}

// memberAt is the value of a member: nil if raw is no object or has none of that name. Of two the last one counts, as
// it does for most readers of JSON.
func memberAt(raw []byte, name string) []byte {
	return rawjson.Member(raw[rawjson.SkipSpace(raw, 0):], name)
}

// mirroredText is a value as its header says it: "string: Use the value as-is; integer: Convert to decimal string
// representation (e.g., 42, -7); boolean: Convert to lowercase true or false". What is neither has no header: the
// server will refuse the arguments themselves.
func mirroredText(value []byte) (text string, ok bool) {
	switch {
	case rawjson.IsNull(value), rawjson.IsObject(value), rawjson.IsArray(value):
		return "", false
	case rawjson.IsText(value):
		return rawjson.Text(value)
	}
	text = string(value)
	if strings.ContainsAny(text, ".eE") {
		// 1e3 and 42.0 are integers too, for JSON Schema. 2⁵³ is where the specification ends.
		if f, err := strconv.ParseFloat(text, 64); err == nil && f == float64(int64(f)) && f > -1<<53 && f < 1<<53 {
			text = strconv.FormatInt(int64(f), 10)
		}
	}
	return text, true
}
