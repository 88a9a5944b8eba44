package messages

// ToProto returns the protobuf form of the tool: its definition, and the members that are read from it.
func (t Tool) ToProto() *ToolEntry {
	return &ToolEntry{Definition: t.Raw, Server: t.Server, Name: t.Name, Title: t.Title, Description: t.Description, InputSchema: t.InputSchema,
		OutputSchema: t.OutputSchema, Annotations: t.Annotations.ToProto(), Icons: iconsToProto(t.Icons), TaskSupport: t.TaskSupport}
}

// ToWholeProto returns the form for the control socket: without the definition.
func (t Tool) ToWholeProto() *ToolEntry {
	p := t.ToProto()
	p.Definition = nil
	return p
}

// ToTool returns the Go form.
func (p *ToolEntry) ToTool() Tool {
	return Tool{Server: p.GetServer(), Name: p.GetName(), Title: p.GetTitle(), Description: p.GetDescription(),
		InputSchema: p.GetInputSchema(), OutputSchema: p.GetOutputSchema(), Annotations: p.GetAnnotations().ToAnnotations(),
		Icons: iconsFromProto(p.GetIcons()), TaskSupport: p.GetTaskSupport(), Raw: p.GetDefinition()}
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
	return &ResourceEntry{Server: r.Server, Uri: r.URI, Name: r.Name, Title: r.Title, Description: r.Description,
		MimeType: r.MIMEType, Size: r.Size, Definition: r.Raw, Annotations: r.Annotations.toProto(), Icons: iconsToProto(r.Icons)}
}

// ToWholeProto returns the form for the control socket, as that of a tool.
func (r Resource) ToWholeProto() *ResourceEntry {
	p := r.ToProto()
	p.Definition = nil
	return p
}

// ToResource returns the Go form.
func (p *ResourceEntry) ToResource() Resource {
	return Resource{Server: p.GetServer(), URI: p.GetUri(), Name: p.GetName(), Title: p.GetTitle(), Description: p.GetDescription(),
		MIMEType: p.GetMimeType(), Size: p.Size, Icons: iconsFromProto(p.GetIcons()), Annotations: p.GetAnnotations().toAnnotations(),
		Raw: p.GetDefinition()}
}

// ToProto returns the protobuf form of the template.
func (t ResourceTemplate) ToProto() *ResourceTemplateEntry {
	return &ResourceTemplateEntry{Server: t.Server, UriTemplate: t.URITemplate, Name: t.Name, Title: t.Title,
		Description: t.Description, MimeType: t.MIMEType, Definition: t.Raw, Annotations: t.Annotations.toProto(),
		Icons: iconsToProto(t.Icons)}
}

// ToWholeProto returns the form for the control socket, as that of a tool.
func (t ResourceTemplate) ToWholeProto() *ResourceTemplateEntry {
	p := t.ToProto()
	p.Definition = nil
	return p
}

// ToTemplate returns the Go form.
func (p *ResourceTemplateEntry) ToTemplate() ResourceTemplate {
	return ResourceTemplate{Server: p.GetServer(), URITemplate: p.GetUriTemplate(), Name: p.GetName(), Title: p.GetTitle(),
		Description: p.GetDescription(), MIMEType: p.GetMimeType(), Icons: iconsFromProto(p.GetIcons()),
		Annotations: p.GetAnnotations().toAnnotations(), Raw: p.GetDefinition()}
}

// ToProto returns the protobuf form of the prompt.
func (p Prompt) ToProto() *PromptEntry {
	e := &PromptEntry{QualifiedName: p.Qualified, Server: p.Server, Name: p.Name, Title: p.Title,
		Description: p.Description, Definition: p.Raw, Icons: iconsToProto(p.Icons)}
	for _, a := range p.Arguments {
		e.Arguments = append(e.Arguments, &PromptArgumentEntry{Name: a.Name, Title: a.Title, Description: a.Description,
			Required: a.Required})
	}
	return e
}

// ToWholeProto returns the form for the control socket, as that of a tool.
func (p Prompt) ToWholeProto() *PromptEntry {
	e := p.ToProto()
	e.Definition = nil
	return e
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

// ToProto returns the protobuf form of the question, without an id, a server and a caller.
func (r CompleteRequest) ToProto() *Complete {
	return &Complete{Prompt: r.Prompt, UriTemplate: r.URITemplate, Argument: r.Argument, Value: r.Value, Context: r.Context}
}

// ToRequest returns the Go form.
func (p *Complete) ToRequest() CompleteRequest {
	return CompleteRequest{Prompt: p.GetPrompt(), URITemplate: p.GetUriTemplate(), Argument: p.GetArgument(), Value: p.GetValue(),
		Context: p.GetContext()}
}

// ToProto returns the protobuf form of the proposals, without an id.
func (c Completion) ToProto() *CompleteReply {
	return &CompleteReply{Values: c.Values, Total: int64(c.Total), HasMore: c.HasMore}
}

// ToCompletion returns the Go form. Where the reply has a failure it is empty.
func (p *CompleteReply) ToCompletion() Completion {
	return Completion{Values: p.GetValues(), Total: int(p.GetTotal()), HasMore: p.GetHasMore()}
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
