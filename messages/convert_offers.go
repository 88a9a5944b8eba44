package messages

import (
	"bytes"
	"math"
)

// ToProto returns the protobuf form of the spec. Scope, Source and the texts about the spec's state are left out: a
// spec that comes by a message has ScopeRuntime.
func (s Spec) ToProto() *ServerSpec { return protoOf(s, &ServerSpec{}) }

// ToSpec returns the Go form, with ScopeRuntime. A nil receiver gives the zero Spec with that scope.
func (p *ServerSpec) ToSpec() Spec {
	s := goOf[Spec](p)
	s.Scope = ScopeRuntime
	return s
}

// What servers offer is written out, because there are many and each list and each status carries them: going by names takes ten times
// as long. A test fills every field, so that none is forgotten.

// ToProto returns the protobuf form of the tool: its definition, and the members that are read from it.
func (t Tool) ToProto() *ToolEntry {
	p := t.ToWholeProto()
	p.Definition = t.Raw
	p.InputSchema, p.InputStart, p.InputEnd = cutSchema(t.Raw, t.InputSchema)
	p.OutputSchema, p.OutputStart, p.OutputEnd = cutSchema(t.Raw, t.OutputSchema)
	return p
}

// cutSchema returns where a schema stands in a definition, in its place; the schema itself if it does not stand there.
func cutSchema(definition, schema []byte) (rest []byte, start, end uint32) {
	at := bytes.Index(definition, schema)
	if at < 0 || len(schema) == 0 || len(definition) > math.MaxInt32 {
		return schema, 0, 0
	}
	return nil, uint32(at), uint32(at + len(schema)) //nolint:gosec // both are within the definition, whose length was compared
}

// schemaOf reads what cutSchema has written; nothing for a place that is not in the definition.
func schemaOf(definition, rest []byte, start, end uint32) []byte {
	if end == 0 || start > end || int(end) > len(definition) {
		return rest
	}
	return definition[start:end:end]
}

// ToWholeProto returns the form for the control socket: without the definition.
func (t Tool) ToWholeProto() *ToolEntry {
	return &ToolEntry{Server: t.Server, Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema,
		OutputSchema: t.OutputSchema, Annotations: t.Annotations.ToProto(), Icons: iconsToProto(t.Icons), TaskSupport: t.TaskSupport}
}

// ToTool returns the Go form.
func (p *ToolEntry) ToTool() Tool {
	return Tool{Server: p.GetServer(), Name: p.GetName(), Title: p.GetTitle(), Description: p.GetDescription(),
		InputSchema:  schemaOf(p.GetDefinition(), p.GetInputSchema(), p.GetInputStart(), p.GetInputEnd()),
		OutputSchema: schemaOf(p.GetDefinition(), p.GetOutputSchema(), p.GetOutputStart(), p.GetOutputEnd()),
		Annotations:  p.GetAnnotations().ToAnnotations(), Icons: iconsFromProto(p.GetIcons()), TaskSupport: p.GetTaskSupport(),
		Raw: p.GetDefinition()}
}

// ToProto returns the protobuf form of the annotations; nil for nil.
func (a *Annotations) ToProto() *ToolHints {
	if a == nil {
		return nil
	}
	return &ToolHints{Title: a.Title, ReadOnly: a.ReadOnly, Destructive: a.Destructive, Idempotent: a.Idempotent, OpenWorld: a.OpenWorld}
}

// ToAnnotations returns the Go form of the annotations; nil for nil.
func (p *ToolHints) ToAnnotations() *Annotations {
	if p == nil {
		return nil
	}
	return &Annotations{Title: p.GetTitle(), ReadOnly: p.ReadOnly, Destructive: p.Destructive, Idempotent: p.Idempotent, OpenWorld: p.OpenWorld}
}

// ToProto returns the protobuf form of the resource.
func (r Resource) ToProto() *ResourceEntry {
	return &ResourceEntry{Server: r.Server, Uri: r.URI, Name: r.Name, Title: r.Title, Description: r.Description, MimeType: r.MIMEType,
		Size: r.Size, Icons: iconsToProto(r.Icons), Annotations: r.Annotations.toProto(), Definition: r.Raw}
}

// ToWholeProto returns the form for the control socket, as that of a tool.
func (r Resource) ToWholeProto() *ResourceEntry {
	r.Raw = nil
	return r.ToProto()
}

// ToResource returns the Go form.
func (p *ResourceEntry) ToResource() Resource {
	return Resource{Server: p.GetServer(), URI: p.GetUri(), Name: p.GetName(), Title: p.GetTitle(), Description: p.GetDescription(),
		MIMEType: p.GetMimeType(), Size: p.Size, Icons: iconsFromProto(p.GetIcons()), Annotations: p.GetAnnotations().toAnnotations(),
		Raw: p.GetDefinition()}
}

// ToProto returns the protobuf form of the template.
func (t ResourceTemplate) ToProto() *ResourceTemplateEntry {
	return &ResourceTemplateEntry{Server: t.Server, UriTemplate: t.URITemplate, Name: t.Name, Title: t.Title, Description: t.Description,
		MimeType: t.MIMEType, Icons: iconsToProto(t.Icons), Annotations: t.Annotations.toProto(), Definition: t.Raw}
}

// ToWholeProto returns the form for the control socket, as that of a tool.
func (t ResourceTemplate) ToWholeProto() *ResourceTemplateEntry {
	t.Raw = nil
	return t.ToProto()
}

// ToTemplate returns the Go form.
func (p *ResourceTemplateEntry) ToTemplate() ResourceTemplate {
	return ResourceTemplate{Server: p.GetServer(), URITemplate: p.GetUriTemplate(), Name: p.GetName(), Title: p.GetTitle(),
		Description: p.GetDescription(), MIMEType: p.GetMimeType(), Icons: iconsFromProto(p.GetIcons()),
		Annotations: p.GetAnnotations().toAnnotations(), Raw: p.GetDefinition()}
}

// ToProto returns the protobuf form of the prompt.
func (p Prompt) ToProto() *PromptEntry {
	e := &PromptEntry{QualifiedName: p.Qualified, Server: p.Server, Name: p.Name, Title: p.Title, Description: p.Description,
		Icons: iconsToProto(p.Icons), Definition: p.Raw}
	for _, a := range p.Arguments {
		e.Arguments = append(e.Arguments, &PromptArgumentEntry{Name: a.Name, Title: a.Title, Description: a.Description, Required: a.Required})
	}
	return e
}

// ToWholeProto returns the form for the control socket, as that of a tool.
func (p Prompt) ToWholeProto() *PromptEntry {
	p.Raw = nil
	return p.ToProto()
}

// ToPrompt returns the Go form.
func (e *PromptEntry) ToPrompt() Prompt {
	p := Prompt{Server: e.GetServer(), Name: e.GetName(), Qualified: e.GetQualifiedName(), Title: e.GetTitle(),
		Description: e.GetDescription(), Icons: iconsFromProto(e.GetIcons()), Raw: e.GetDefinition()}
	for _, a := range e.GetArguments() {
		p.Arguments = append(p.Arguments, PromptArgument{Name: a.GetName(), Title: a.GetTitle(), Description: a.GetDescription(),
			Required: a.GetRequired()})
	}
	return p
}

func (a *ResourceAnnotations) toProto() *ResourceHints {
	if a == nil {
		return nil
	}
	return &ResourceHints{Audience: a.Audience, Priority: a.Priority, LastModified: a.LastModified}
}

func (p *ResourceHints) toAnnotations() *ResourceAnnotations {
	if p == nil {
		return nil
	}
	return &ResourceAnnotations{Audience: p.GetAudience(), Priority: p.Priority, LastModified: p.GetLastModified()}
}

func iconsToProto(all []Icon) (out []*IconEntry) {
	for _, i := range all {
		out = append(out, &IconEntry{Src: i.Src, MimeType: i.MIMEType, Sizes: i.Sizes, Theme: i.Theme})
	}
	return out
}

func iconsFromProto(all []*IconEntry) (out []Icon) {
	for _, i := range all {
		out = append(out, Icon{Src: i.GetSrc(), MIMEType: i.GetMimeType(), Sizes: i.GetSizes(), Theme: i.GetTheme()})
	}
	return out
}

// ToProto returns the protobuf form of the question, without an id, a server and a caller.
func (r CompleteRequest) ToProto() *Complete { return protoOf(r, &Complete{}) }

// ToRequest returns the Go form.
func (p *Complete) ToRequest() CompleteRequest { return goOf[CompleteRequest](p) }

// ToProto returns the protobuf form of the proposals, without an id.
func (c Completion) ToProto() *CompleteReply { return protoOf(c, &CompleteReply{}) }

// ToCompletion returns the Go form. Where the reply has a failure it is empty.
func (p *CompleteReply) ToCompletion() Completion { return goOf[Completion](p) }
