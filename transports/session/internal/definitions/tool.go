package definitions

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

const (
	// MaxDefinition bounds one definition of a tool, a resource, a template or a prompt, in bytes. serverInfo has no bound here but
	// that of a message.
	MaxDefinition = 1 << 20
	// maxToolName bounds a tool's name, in characters. 2025-11-25: "Tool names SHOULD be between 1 and 128 characters
	// in length (inclusive)."
	maxToolName = 128
)

// anyObject is the input schema of a tool whose definition has none.
var anyObject = json.RawMessage(`{"type":"object"}`)

// ReadTool reads one definition. reason says why the tool cannot be used, empty if it can; the name is set as far as
// it is known. Members that a tool can be used without are dropped silently if they have a wrong type: title,
// description, annotations, output schema.
func ReadTool(raw []byte) (tool messages.Tool, reason string) {
	if !rawjson.IsObject(raw) {
		return tool, "the definition is not an object"
	}
	// Raw is the definition as it came: pins compare it, and the program may look for members that are not read here.
	tool.Raw = raw
	var name, schema []byte
	m := rawjson.ObjectAt(raw, 0, 0)
	for m.Next() {
		value := m.Skip()
		switch string(m.Name) {
		case "name":
			name = value
		case "title":
			tool.Title, _ = rawjson.Text(value)
		case "description":
			tool.Description, _ = rawjson.Text(value)
		case "inputSchema":
			schema = value
		case "outputSchema":
			// If the member stands twice, the last one counts, also if it is no schema.
			tool.OutputSchema = nil
			// Without one the answers of the tool are not checked.
			if rawjson.IsObject(value) {
				tool.OutputSchema = value
			}
		case "annotations":
			tool.Annotations = readAnnotations(value)
		case "icons":
			tool.Icons = readIcons(value)
		case "execution":
			tool.TaskSupport = readTaskSupport(rawjson.Member(value, "taskSupport"))
		}
	}
	// The cheap checks come first; CheckDoubled reads the whole definition again.
	if tool.Name, reason = readToolName(name); reason != "" {
		return tool, reason
	}
	if len(raw) > MaxDefinition {
		return tool, "the definition is larger than 1 MiB"
	}
	if err := rawjson.CheckDoubled(raw); err != nil {
		// Programs differ in which of two members of one name they take, so the definition that a person approves
		// might not be the one that a model gets.
		return tool, "the definition cannot be read in one way: " + err.Error()
	}
	// A schema that is no object schema quarantines this tool alone; the others of the list are offered.
	tool.InputSchema, reason = readInputSchema(schema)
	return tool, reason
}

// readTaskSupport returns optional or required; empty for forbidden, which is the default, and for unknown values.
func readTaskSupport(value []byte) string {
	if text, _ := rawjson.Text(value); text == "optional" || text == "required" {
		return text
	}
	return ""
}

// readToolName reads the name of a tool. reason says why it cannot be used, empty if it can.
func readToolName(raw []byte) (name, reason string) {
	name, ok := rawjson.Text(raw)
	switch {
	case rawjson.IsNull(raw):
		return "", "it has no name"
	case !ok:
		return "", "the name is not a string"
	case name == "":
		return "", "the name is empty"
	case utf8.RuneCountInString(name) > maxToolName:
		return name, "the name is longer than 128 characters"
	case strings.ContainsRune(name, utf8.RuneError):
		// The text is not valid UTF-8, or half of a surrogate pair: the decoded name could not be sent back as the
		// server wrote it.
		return name, "the name holds characters that are not valid"
	}
	return name, ""
}

// readInputSchema checks a schema as far as model providers do. It is lenient with a missing schema, and strict with
// one that cannot describe an object, or whose properties or required have an invalid form: model providers refuse a
// whole request for one such tool. It follows no reference and compiles no pattern.
func readInputSchema(raw []byte) (schema json.RawMessage, reason string) {
	// Servers leave the schema out, or write null, for a tool without arguments.
	if rawjson.IsNull(raw) {
		return anyObject, ""
	}
	if !rawjson.IsObject(raw) {
		return nil, "the input schema is not an object"
	}
	// References are not followed, so that a schema costs one walk whatever it names.
	var noObject, noProperties, noNames bool // if a keyword stands twice, the last one counts
	m := rawjson.ObjectAt(raw, 0, 0)
	for m.Next() {
		value := m.Skip()
		switch string(m.Name) {
		case "type":
			noObject = !allowsObject(value)
		case "properties":
			noProperties = !rawjson.IsNull(value) && !namesSchemas(value) // some languages write an empty object as null
		case "required":
			noNames = !rawjson.IsNull(value) && !namesOnly(value)
		}
	}
	switch {
	case noObject:
		return raw, `the input schema's type is not "object"`
	case noProperties:
		return raw, "the input schema's properties are not an object of schemas"
	case noNames:
		return raw, "the input schema's required is not a list of names"
	}
	return raw, ""
}

// namesSchemas reports whether value is an object whose members are schemas: objects or booleans.
func namesSchemas(value []byte) bool {
	if !rawjson.IsObject(value) {
		return false
	}
	m := rawjson.ObjectAt(value, 0, 0)
	for m.Next() {
		// true and false are schemas as well (JSON Schema, draft 6 and later).
		if schema := m.Skip(); !rawjson.IsObject(schema) && rawjson.Truth(schema) == nil {
			return false
		}
	}
	return true
}

// namesOnly reports whether value is a list of strings.
func namesOnly(value []byte) bool {
	if !rawjson.IsArray(value) {
		return false
	}
	// An empty list is one of names, too.
	list := rawjson.ArrayAt(value, 0, 0)
	for list.Next() {
		if !rawjson.IsText(list.Skip()) {
			return false
		}
	}
	return true
}

// allowsObject reports whether the keyword type admits objects: it is "object", or a list with it.
func allowsObject(value []byte) bool {
	// A keyword of any other form is no type, and admits nothing.
	if !rawjson.IsArray(value) {
		return isWord(value, "object")
	}
	list := rawjson.ArrayAt(value, 0, 0)
	for list.Next() {
		if isWord(list.Skip(), "object") {
			return true
		}
	}
	return false
}

// isWord reports whether value is this text, with or without escapes.
func isWord(value []byte, word string) bool {
	// The comparison without escapes costs no allocation, and nearly every schema ends here.
	if rawjson.IsText(value) && string(value[1:len(value)-1]) == word {
		return true
	}
	text, _ := rawjson.Text(value)
	return text == word
}

// readAnnotations reads the hints of a tool; nil if they hold nothing that is known. A hint that the server does not
// give stays nil, because its default differs from hint to hint.
func readAnnotations(raw []byte) *messages.Annotations {
	if !rawjson.IsObject(raw) {
		return nil
	}
	var a struct { // the hints live in the same allocation as their pointers
		messages.Annotations
		hints [4]bool
	}
	hint := func(i int, value []byte) *bool {
		if t := rawjson.Truth(value); t != nil {
			a.hints[i] = *t
			return &a.hints[i]
		}
		return nil
	}
	m := rawjson.ObjectAt(raw, 0, 0)
	for m.Next() {
		value := m.Skip()
		switch string(m.Name) {
		case "title":
			a.Title, _ = rawjson.Text(value)
		case "readOnlyHint":
			a.ReadOnly = hint(0, value)
		case "destructiveHint":
			a.Destructive = hint(1, value)
		case "idempotentHint":
			a.Idempotent = hint(2, value)
		case "openWorldHint":
			a.OpenWorld = hint(3, value)
		}
	}
	if a.Annotations == (messages.Annotations{}) {
		return nil
	}
	return &a.Annotations
}
