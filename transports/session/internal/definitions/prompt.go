package definitions

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
)

const (
	// MaxURI bounds a URI and a URI template, in bytes: anything longer is data and no address. maxPromptName bounds
	// the name of a prompt, in characters; the specification has no bound.
	MaxURI        = 8 << 10
	maxPromptName = 512
)

// ReadPrompt reads one prompt in the same way; its key is the name.
func ReadPrompt(raw []byte) (p messages.Prompt, name, reason string) {
	if !rawjson.IsObject(raw) {
		return p, "", "the definition is not an object"
	}
	// The name is read after the walk: if the member stands twice, the last one counts.
	p.Raw = raw
	var key []byte
	m := rawjson.ObjectAt(raw, 0, 0)
	for m.Next() {
		value := m.Skip()
		switch string(m.Name) {
		case "name":
			key = value
		case "title":
			p.Title, _ = rawjson.Text(value)
		case "description":
			p.Description, _ = rawjson.Text(value)
		case "icons":
			p.Icons = readIcons(value)
		case "arguments":
			p.Arguments = readPromptArguments(value)
		}
	}
	// The bound in bytes comes first, so that the characters of a huge name are not counted.
	if p.Name, reason = readKey(key, "name", MaxURI); reason == "" && utf8.RuneCountInString(p.Name) > maxPromptName {
		reason = "the name is longer than " + strconv.Itoa(maxPromptName) + " characters"
	}
	return p, p.Name, tooLarge(raw, reason)
}

// readPromptArguments reads the arguments of a prompt and leaves out those without a usable name: no value can be
// given for them.
func readPromptArguments(raw []byte) (args []messages.PromptArgument) {
	// A member of a wrong type counts as a prompt without arguments.
	if !rawjson.IsArray(raw) {
		return nil
	}
	list := rawjson.ArrayAt(raw, 0, 0)
	for list.Next() {
		value := list.Skip()
		// One broken argument does not cost the prompt: a value for it cannot be given, and the server says so if it needs one.
		if !rawjson.IsObject(value) {
			continue
		}
		var a messages.PromptArgument
		m := rawjson.ObjectAt(value, 0, 0)
		for m.Next() {
			value := m.Skip()
			switch string(m.Name) {
			case "name":
				a.Name, _ = rawjson.Text(value)
			case "title":
				a.Title, _ = rawjson.Text(value)
			case "description":
				a.Description, _ = rawjson.Text(value)
			case "required":
				// Only true makes it required: a text or a number is no answer.
				a.Required = jsonrpc.IsTrue(value)
			}
		}
		// A name with a replacement character could not be sent back as the server wrote it.
		if a.Name != "" && !strings.ContainsRune(a.Name, utf8.RuneError) {
			args = append(args, a)
		}
	}
	return args
}
