// Package headers finds the arguments of a tool that a call over HTTP repeats in headers (x-mcp-header, 2026-07-28), and encodes
// them.
//
//	params, problem := headers.ReadSchema(tool.InputSchema) // problem: the tool may not be offered over HTTP
//	header, tooLong := params.Values(args)
//
// Package session reads the schemas of each new list of tools, keeps the [Params] by tool, and adds the values to each call.
//
// Guarantees: a tool whose annotations break the rules of the specification gets a problem, also where the annotation stands in a
// part of the schema that no argument reaches. The package is pure: it keeps nothing, and [Params] are not written to after
// ReadSchema.
//
// Not promised: that the server agrees. It refuses a call whose headers it does not expect, and the session then lists the tools
// once more.
package headers

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports"
)

// headerKeyword is the keyword with which a tool's input schema asks for a parameter in an HTTP header.
const headerKeyword = "x-mcp-header"

// maxSchemaDepth bounds the nesting of schemas that are searched for annotations: each level is read again by the
// level above, so the cost grows with the depth. No real schema comes near.
const maxSchemaDepth = 64

// Params are the arguments of one tool that are repeated as HTTP headers. The zero value repeats none.
type Params []param

// A param is one parameter: the chain of property names that leads to it, and the name of its header.
type param struct {
	path   []string
	header string
}

// ReadSchema reads the annotations of a tool's input schema. problem says why the tool may not be offered over
// HTTP, empty if it may.
//
// 2026-07-28, Custom Headers from Tool Parameters: "While the use of x-mcp-header is optional for servers, clients
// MUST support this feature. … Clients using the Streamable HTTP transport MUST reject tool definitions where any
// x-mcp-header value violates these constraints. Rejection means the client MUST exclude the invalid tool from the
// result of tools/list." Other transports may ignore the annotation.
func ReadSchema(schema []byte) (m Params, problem string) {
	if !bytes.Contains(schema, []byte(headerKeyword)) && !bytes.Contains(schema, []byte(`\u`)) {
		return nil, "" // almost every schema ends here; the keyword could be written with escapes
	}
	r := headerSchemaReader{names: make(map[string]struct{})}
	r.readSchema(schema, nil, true)
	if r.problem != "" {
		return nil, r.problem
	}
	return r.headers, ""
}

// headerSchemaReader walks over a schema, collects the annotated parameters and stops at the first fault.
type headerSchemaReader struct {
	headers Params
	names   map[string]struct{} // the headers' names in lower case, to find duplicates
	depth   int                 // of the schema that is being read
	problem string              // the first fault, empty if there is none
}

// setProblem records a fault, unless there was one before.
func (r *headerSchemaReader) setProblem(format string, args ...any) {
	if r.problem == "" {
		r.problem = headerKeyword + " " + fmt.Sprintf(format, args...)
	}
}

// The keywords of JSON Schema that hold a schema, a list of schemas, or an object of schemas. Every other keyword
// holds data, or is unknown, and is not searched.
var (
	holdSchema = wordSet("items additionalItems contains additionalProperties propertyNames not if then else " +
		"unevaluatedItems unevaluatedProperties contentSchema")
	holdSchemas = wordSet("items prefixItems allOf anyOf oneOf")
	holdNamed   = wordSet("patternProperties $defs definitions dependentSchemas dependencies")
)

// wordSet returns the words of s as a set.
func wordSet(s string) map[string]bool {
	set := make(map[string]bool)
	for w := range strings.FieldsSeq(s) {
		set[w] = true
	}
	return set
}

// readSchema reads one schema. reachable is true if path leads to it through properties alone; path is empty for the
// root.
//
// 2026-07-28: "The chain MUST NOT pass through items (or any other array keyword), composition keywords (oneOf,
// anyOf, allOf, not), conditional keywords (if/then/else), or $ref. … An x-mcp-header annotation anywhere else makes
// the annotation — and thus the tool definition — invalid."
func (r *headerSchemaReader) readSchema(raw []byte, path []string, reachable bool) {
	if !rawjson.IsObject(raw) || r.problem != "" {
		return
	}
	// Too deep to search: the tool is refused only if there could be an annotation.
	if r.depth >= maxSchemaDepth {
		if bytes.Contains(raw, []byte(headerKeyword)) {
			r.setProblem("stands too deep")
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
		case key == headerKeyword:
			name = value
		case key == "type":
			kind = value
		case key == "properties":
			r.readNamedSchemas(value, path, reachable)
		case holdNamed[key]:
			r.readNamedSchemas(value, nil, false)
		// Below these keywords an annotation is not reachable, and so makes the tool invalid; it must be found all
		// the same.
		case holdSchema[key] && rawjson.IsObject(value):
			r.readSchema(value, nil, false)
		case holdSchemas[key] && rawjson.IsArray(value):
			list := rawjson.ArrayAt(value, 0, 0)
			for list.Next() {
				r.readSchema(list.Skip(), nil, false)
			}
		}
	}
	// The type may stand behind the annotation, so the annotation is checked last.
	if name != nil {
		r.checkAnnotation(name, kind, path, reachable)
	}
}

// readNamedSchemas reads an object whose members are schemas. Each member gets a path of its own, because the paths
// are kept.
func (r *headerSchemaReader) readNamedSchemas(raw []byte, path []string, reachable bool) {
	if !rawjson.IsObject(raw) {
		return
	}
	m := rawjson.ObjectAt(raw, 0, 0)
	for m.Next() {
		key := string(m.Name)
		r.readSchema(m.Skip(), append(slices.Clip(path), key), reachable)
	}
}

// checkAnnotation checks one annotation against the rules of the specification and records its header. raw is the
// annotation's value, kind that of the keyword type beside it.
func (r *headerSchemaReader) checkAnnotation(raw, kind []byte, path []string, reachable bool) {
	name, ok := rawjson.Text(raw)
	lower := strings.ToLower(name)
	_, duplicate := r.names[lower]
	switch {
	case !reachable || len(path) == 0:
		r.setProblem("stands where no chain of properties leads")
	case !ok:
		r.setProblem("of %s is not a string", messages.Line(strings.Join(path, "."), 60))
	case name == "":
		r.setProblem("of %s is empty", messages.Line(strings.Join(path, "."), 60))
	case !isToken(name):
		r.setProblem("%s cannot be part of the name of a header", strconv.Quote(messages.Line(name, 60)))
	case !allowsHeader(kind):
		r.setProblem("%s is on a parameter that is no string, integer or boolean", messages.Line(name, 60))
	case duplicate:
		r.setProblem("%s stands twice", messages.Line(name, 60))
	default:
		r.names[lower] = struct{}{}
		r.headers = append(r.headers, param{path, "Mcp-Param-" + name})
	}
}

// isToken reports whether s is an HTTP token (RFC 9110, 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return s != ""
}

// allowsHeader reports whether a type is one of those that have headers. 2026-07-28: "primitive types (integer,
// string, boolean). Parameters with type number are not permitted." A parameter may also be null: "Parameter value is
// null: Client MUST omit the header".
func allowsHeader(kind []byte) bool {
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
			if !allowsHeader(value) || rawjson.IsArray(value) {
				return false
			}
			some = true
		}
	}
	return some
}

// maxParamHeaderBytes bounds the headers of one call together, in bytes. Servers close the connection over larger
// ones without a word (8 KiB is the usual limit of all headers of a request), and then the call's outcome would be
// unknown.
const maxParamHeaderBytes = 8 << 10

// Values returns the headers that a call with these arguments needs: encoded values by their headers' names,
// nil for none. args is a JSON object, or empty. tooLong is the not-sent error of a call whose headers exceed
// maxParamHeaderBytes.
//
// 2026-07-28: "Header extraction is defined as reading the instance value at the exact property path of the annotated
// property … If no value is present at that path in the call arguments, the header is omitted."
func (m Params) Values(args []byte) (h map[string]string, tooLong *messages.Error) {
	size := 0
	for _, p := range m {
		text, ok := headerText(p.valueIn(args))
		if !ok {
			continue
		}
		if h == nil {
			h = make(map[string]string, len(m))
		}
		encoded := transports.HeaderValue(text)
		if size += len(p.header) + len(encoded); size > maxParamHeaderBytes {
			return nil, &messages.Error{Op: "call", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid,
				Text: fmt.Sprintf("the argument %q must go into an HTTP header of the request, and the headers of one call may hold at most 8 KiB",
					messages.Line(strings.Join(p.path, "."), 100)),
				Fix: "give a shorter value"}
		}
		h[p.header] = encoded
	}
	return h, nil
}

// FindMismatch returns the name of a header that does not repeat its argument, empty if all of them do: it is the other side of Values, for
// who receives a call. header returns the values of a header of the request, decoded; ok is false if one of them stands for none.
//
// 2026-07-28, Server Behavior for Custom Headers: "Any server that processes the message body MUST validate that encoded header values, after
// decoding if Base64-encoded, match the corresponding values in the request body". "Client omits header but value is in body … Server MUST
// reject the request". Of integers: "servers SHOULD compare the header value and the body value numerically".
func (m Params) FindMismatch(args []byte, header func(name string) (values []string, ok bool)) string {
	for _, p := range m {
		value := p.valueIn(args)
		values, readable := header(p.header)
		want, ok := headerText(value)
		if !readable || p.isDoubled(args) {
			return p.header
		}
		if !ok && len(values) == 0 {
			continue
		}
		if !ok || len(values) != 1 {
			return p.header
		}
		got := values[0]
		if !rawjson.IsText(value) {
			got = integerText(got)
		}
		if got != want {
			return p.header
		}
	}
	return ""
}

// valueIn returns the argument; nil, and so no header, if a member on the way to it is missing.
func (p param) valueIn(args []byte) []byte {
	for _, name := range p.path {
		args = memberAt(args, name)
	}
	return args
}

// isDoubled reports whether a member on the way to the argument is there twice: the server may read another one than its intermediary has
// compared with the header.
func (p param) isDoubled(args []byte) bool {
	for _, name := range p.path {
		args = args[rawjson.SkipSpace(args, 0):]
		if !rawjson.IsObject(args) {
			return false
		}
		found := 0
		for o := rawjson.ObjectAt(args, 0, 0); o.Next(); o.Skip() {
			if string(o.Name) == name {
				found++
			}
		}
		if found > 1 {
			return true
		}
		args = memberAt(args, name)
	}
	return false
}

// memberAt returns the value of a member: nil if raw is no object or has none of that name. Of two the last one
// counts, as it does for most readers of JSON.
func memberAt(raw []byte, name string) []byte {
	return rawjson.Member(raw[rawjson.SkipSpace(raw, 0):], name)
}

// headerText returns a value in the form of its header. 2026-07-28: "string: Use the value as-is; integer: Convert to
// decimal string representation (e.g., 42, -7); boolean: Convert to lowercase true or false". Objects, arrays and
// null have no header: the server will refuse the arguments themselves.
func headerText(value []byte) (text string, ok bool) {
	switch {
	case rawjson.IsNull(value), rawjson.IsObject(value), rawjson.IsArray(value):
		return "", false
	case rawjson.IsText(value):
		return rawjson.Text(value)
	}
	return integerText(string(value)), true
}

// integerText returns an integer in the form of its header, and every other text as it is: 1e3 and 42.0 are integers too, for JSON Schema.
// The specification's integers end at 2⁵³.
func integerText(text string) string {
	if strings.ContainsAny(text, ".eE") {
		if f, err := strconv.ParseFloat(text, 64); err == nil && f == float64(int64(f)) && f > -1<<53 && f < 1<<53 {
			return strconv.FormatInt(int64(f), 10)
		}
	}
	return text
}
