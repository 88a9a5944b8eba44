package messages

// ToProto returns the protobuf form of the spec. Scope, Source and the texts about the spec's state are left out: a
// spec that comes by a message has ScopeRuntime.
func (s Spec) ToProto() *ServerSpec { return protoOf(s, &ServerSpec{}) }

// ToSpec returns the Go form, with ScopeRuntime. A nil receiver gives the zero Spec with that scope.
func (p *ServerSpec) ToSpec() Spec {
	s := goOf[Spec](p)
	s.Scope = ScopeRuntime
	return s
}

// ToProto returns the protobuf form of the tool: its definition, and the members that are read from it.
func (t Tool) ToProto() *ToolEntry { return protoOf(t, &ToolEntry{}) }

// ToWholeProto returns the form for the control socket: without the definition.
func (t Tool) ToWholeProto() *ToolEntry {
	t.Raw = nil
	return t.ToProto()
}

// ToTool returns the Go form.
func (p *ToolEntry) ToTool() Tool { return goOf[Tool](p) }

// ToProto returns the protobuf form of the annotations; nil for nil.
func (a *Annotations) ToProto() *ToolHints {
	if a == nil {
		return nil
	}
	return protoOf(*a, &ToolHints{})
}

// ToAnnotations returns the Go form of the annotations; nil for nil.
func (p *ToolHints) ToAnnotations() *Annotations {
	if p == nil {
		return nil
	}
	a := goOf[Annotations](p)
	return &a
}

// ToProto returns the protobuf form of the resource.
func (r Resource) ToProto() *ResourceEntry { return protoOf(r, &ResourceEntry{}) }

// ToWholeProto returns the form for the control socket, as that of a tool.
func (r Resource) ToWholeProto() *ResourceEntry {
	r.Raw = nil
	return r.ToProto()
}

// ToResource returns the Go form.
func (p *ResourceEntry) ToResource() Resource { return goOf[Resource](p) }

// ToProto returns the protobuf form of the template.
func (t ResourceTemplate) ToProto() *ResourceTemplateEntry {
	return protoOf(t, &ResourceTemplateEntry{})
}

// ToWholeProto returns the form for the control socket, as that of a tool.
func (t ResourceTemplate) ToWholeProto() *ResourceTemplateEntry {
	t.Raw = nil
	return t.ToProto()
}

// ToTemplate returns the Go form.
func (p *ResourceTemplateEntry) ToTemplate() ResourceTemplate { return goOf[ResourceTemplate](p) }

// ToProto returns the protobuf form of the prompt.
func (p Prompt) ToProto() *PromptEntry { return protoOf(p, &PromptEntry{}) }

// ToWholeProto returns the form for the control socket, as that of a tool.
func (p Prompt) ToWholeProto() *PromptEntry {
	p.Raw = nil
	return p.ToProto()
}

// ToPrompt returns the Go form.
func (e *PromptEntry) ToPrompt() Prompt { return goOf[Prompt](e) }

// ToProto returns the protobuf form of the question, without an id, a server and a caller.
func (r CompleteRequest) ToProto() *Complete { return protoOf(r, &Complete{}) }

// ToRequest returns the Go form.
func (p *Complete) ToRequest() CompleteRequest { return goOf[CompleteRequest](p) }

// ToProto returns the protobuf form of the proposals, without an id.
func (c Completion) ToProto() *CompleteReply { return protoOf(c, &CompleteReply{}) }

// ToCompletion returns the Go form. Where the reply has a failure it is empty.
func (p *CompleteReply) ToCompletion() Completion { return goOf[Completion](p) }
