package catalog

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Whatever differs in a definition makes it another one, and an equal copy is the same.
func TestEachPartOfADefinitionCounts(t *testing.T) {
	yes, no := true, false
	whole := func() *messages.Tool {
		return &messages.Tool{
			Server: "a", Name: "n", Title: "t", Description: "d", InputSchema: []byte("{}"), OutputSchema: []byte("{}"), Raw: []byte("{}"),
			TaskSupport: "optional", Icons: []messages.Icon{{Src: "https://x", MIMEType: "image/png", Theme: "dark", Sizes: []string{"1x1"}}},
			Annotations: &messages.Annotations{Title: "a", ReadOnly: &yes, Destructive: &yes, Idempotent: &yes, OpenWorld: &yes},
		}
	}
	if !sameTool(whole(), whole()) {
		t.Error("an equal definition is another one")
	}
	other := whole()
	other.Server = "b"
	if !sameTool(whole(), other) {
		t.Error("the same definition of another server is another one")
	}
	for what, change := range map[string]func(*messages.Tool){
		"name":               func(o *messages.Tool) { o.Name = "m" },
		"title":              func(o *messages.Tool) { o.Title = "u" },
		"description":        func(o *messages.Tool) { o.Description = "e" },
		"input schema":       func(o *messages.Tool) { o.InputSchema = []byte("[]") },
		"output schema":      func(o *messages.Tool) { o.OutputSchema = []byte("[]") },
		"bytes":              func(o *messages.Tool) { o.Raw = []byte("[]") },
		"tasks":              func(o *messages.Tool) { o.TaskSupport = "required" },
		"no icon":            func(o *messages.Tool) { o.Icons = nil },
		"icon's source":      func(o *messages.Tool) { o.Icons[0].Src = "https://y" },
		"icon's type":        func(o *messages.Tool) { o.Icons[0].MIMEType = "image/gif" },
		"icon's theme":       func(o *messages.Tool) { o.Icons[0].Theme = "light" },
		"icon's sizes":       func(o *messages.Tool) { o.Icons[0].Sizes = []string{"2x2"} },
		"no annotations":     func(o *messages.Tool) { o.Annotations = nil },
		"annotated title":    func(o *messages.Tool) { o.Annotations.Title = "b" },
		"read only":          func(o *messages.Tool) { o.Annotations.ReadOnly = &no },
		"not read only":      func(o *messages.Tool) { o.Annotations.ReadOnly = nil },
		"destructive":        func(o *messages.Tool) { o.Annotations.Destructive = &no },
		"idempotent":         func(o *messages.Tool) { o.Annotations.Idempotent = &no },
		"open world":         func(o *messages.Tool) { o.Annotations.OpenWorld = &no },
		"not open world yet": func(o *messages.Tool) { o.Annotations.OpenWorld = nil },
	} {
		other := whole()
		change(other)
		if sameTool(whole(), other) || sameTool(other, whole()) {
			t.Errorf("%s: another definition is the same", what)
		}
	}
}
