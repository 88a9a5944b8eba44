package definitions

import (
	"reflect"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// ReadTool reads every member of a tool's definition.
func TestEveryMemberOfAToolIsRead(t *testing.T) {
	yes, no := true, false
	tool, reason := ReadTool([]byte(`{"name":"n","title":"T","description":"d","inputSchema":{"type":"object"},"outputSchema":{"type":"object"},` +
		`"annotations":{"title":"a","readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false},` +
		`"icons":[{"src":"https://example.org/i.png","mimeType":"image/png","sizes":["48x48"]}],"execution":{"taskSupport":"required"}}`))
	tool.Raw = nil
	want := messages.Tool{Name: "n", Title: "T", Description: "d", InputSchema: []byte(`{"type":"object"}`), OutputSchema: []byte(`{"type":"object"}`),
		Annotations: &messages.Annotations{Title: "a", ReadOnly: &yes, Destructive: &no, Idempotent: &yes, OpenWorld: &no},
		Icons:       []messages.Icon{{Src: "https://example.org/i.png", MIMEType: "image/png", Sizes: []string{"48x48"}}}, TaskSupport: "required"}
	if reason != "" || !reflect.DeepEqual(tool, want) {
		t.Errorf("%+v, %q", tool, reason)
	}
}

// The readers of resources, templates and prompts read every member, and quarantine a definition without a key.
func TestEveryMemberOfAnOfferIsRead(t *testing.T) {
	const rest = `"name":"n","title":"T","description":"d","mimeType":"text/plain","icons":[{"src":"https://example.org/i.png"}],` +
		`"annotations":{"audience":["user"],"priority":0.5,"lastModified":"2025-01-12"}`
	size, half := int64(7), 0.5
	icons := []messages.Icon{{Src: "https://example.org/i.png"}}
	notes := &messages.ResourceAnnotations{Audience: []string{"user"}, Priority: &half, LastModified: "2025-01-12"}
	resource, key, reason := ReadResource([]byte(`{"uri":"x:///1","size":7,` + rest + `}`))
	resource.Raw = nil
	if want := (messages.Resource{URI: "x:///1", Name: "n", Title: "T", Description: "d", MIMEType: "text/plain", Size: &size, Icons: icons,
		Annotations: notes}); key != "x:///1" || reason != "" || !reflect.DeepEqual(resource, want) {
		t.Errorf("%+v, %q, %q", resource, key, reason)
	}
	template, key, reason := ReadTemplate([]byte(`{"uriTemplate":"x:///{n}",` + rest + `}`))
	template.Raw = nil
	if want := (messages.ResourceTemplate{URITemplate: "x:///{n}", Name: "n", Title: "T", Description: "d", MIMEType: "text/plain", Icons: icons,
		Annotations: notes}); key != "x:///{n}" || reason != "" || !reflect.DeepEqual(template, want) {
		t.Errorf("%+v, %q, %q", template, key, reason)
	}
	prompt, key, reason := ReadPrompt([]byte(`{` + rest + `,"arguments":[{"name":"a","title":"A","description":"e","required":true},{"title":"no name"}]}`))
	prompt.Raw = nil
	if want := (messages.Prompt{Name: "n", Title: "T", Description: "d", Icons: icons,
		Arguments: []messages.PromptArgument{{Name: "a", Title: "A", Description: "e", Required: true}}}); key != "n" || reason != "" ||
		!reflect.DeepEqual(prompt, want) {
		t.Errorf("%+v, %q, %q", prompt, key, reason)
	}
	for _, raw := range []string{`7`, `{}`, `{"uri":"","uriTemplate":"","name":""}`, `{"uri":7,"uriTemplate":7,"name":7}`} {
		_, _, one := ReadResource([]byte(raw))
		_, _, two := ReadTemplate([]byte(raw))
		_, _, three := ReadPrompt([]byte(raw))
		if one == "" || two == "" || three == "" {
			t.Errorf("%s is an offer: %q, %q, %q", raw, one, two, three)
		}
	}
}
