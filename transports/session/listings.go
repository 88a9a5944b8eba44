package session

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// Listing is one list of what a server offers. Whoever gets it may read it and nothing else: it is shared.
type Listing[T any] struct {
	// Items are in the server's order, without a Server; each URI or name stands once.
	Items []T
	// Quarantined are the entries that cannot be used, with the reason. Their names are neutralised.
	Quarantined []messages.QuarantinedTool
	// Public says that the server lets the list be shared between users (cacheScope "public" on every page). A session is
	// one authorization context: within it every list may be kept, and whoever hands one to other users looks here.
	Public bool
}

// listCaches are the lists that a session keeps.
type listCaches struct {
	resources listCache[messages.Resource]
	templates listCache[messages.ResourceTemplate]
	prompts   listCache[messages.Prompt]
}

// ensureListCaches are the lists that the session keeps, made by whoever asks first: most servers have tools and nothing else.
func (s *Session) ensureListCaches() *listCaches {
	if o := s.listCaches.Load(); o != nil {
		return o
	}
	o := new(listCaches)
	o.resources.init(s, &resourceKind, func(c *Capabilities) (bool, bool) { return c.Resources, c.ResourcesListChanged })
	o.templates.init(s, &templateKind, func(c *Capabilities) (bool, bool) { return c.Resources, c.ResourcesListChanged })
	o.prompts.init(s, &promptKind, func(c *Capabilities) (bool, bool) { return c.Prompts, c.PromptsListChanged })
	s.listCaches.CompareAndSwap(nil, o)
	return s.listCaches.Load()
}

// invalidateLists notes that lists may be others now. What nobody has asked for is not kept.
func (o *listCaches) invalidateLists(resources, prompts bool) {
	if o == nil {
		return
	}
	if resources {
		o.resources.markChanged()
		o.templates.markChanged()
	}
	if prompts {
		o.prompts.markChanged()
	}
}

// usedLists reports whether anybody has asked for resources or templates, and for prompts.
func (o *listCaches) usedLists() (resources, prompts bool) {
	if o == nil {
		return false, false
	}
	return o.resources.wasUsed() || o.templates.wasUsed(), o.prompts.wasUsed()
}

// Resources are all pages of the server's list of resources. A server that declares no resources has an empty list and is
// not asked. One that cannot be used is quarantined.
//
// The list is fetched on first use and kept as long as it is valid: until the server says that it changed, and in the
// modern era as long as the server said (the shortest ttlMs of its pages; not at all without one). A server of the legacy
// era that does not tell about changes is asked again after 5 s; one that is reached over HTTP after 1 min in any case,
// because there a server may declare that it tells and offer no stream to tell on. Callers at the same time share one
// fetch, which may take up to 2 min and is not ended by the end of a caller's ctx. An error is not kept.
//
// An error is a *messages.Error with Op "read" and an Outcome.
func (s *Session) Resources(ctx context.Context) (Listing[messages.Resource], error) {
	return s.ensureListCaches().resources.get(ctx)
}

// ResourceTemplates are the server's resource templates, kept like Resources.
func (s *Session) ResourceTemplates(ctx context.Context) (Listing[messages.ResourceTemplate], error) {
	return s.ensureListCaches().templates.get(ctx)
}

// Prompts are the server's prompts, kept like Resources.
func (s *Session) Prompts(ctx context.Context) (Listing[messages.Prompt], error) {
	return s.ensureListCaches().prompts.get(ctx)
}

var (
	resourceKind = listKind[messages.Resource]{
		method: "resources/list", member: "resources", singular: "resource", plural: "resources", unique: "URI", read: readResource,
	}
	templateKind = listKind[messages.ResourceTemplate]{
		method: "resources/templates/list", member: "resourceTemplates", singular: "resource template",
		plural: "resource templates", unique: "URI template", read: readTemplate,
		optional: true, // many servers with resources have none, and do not answer
	}
	promptKind = listKind[messages.Prompt]{
		method: "prompts/list", member: "prompts", singular: "prompt", plural: "prompts", unique: "name", read: readPrompt,
	}
)

const (
	// maxURI bounds a URI and a URI template, in bytes: what is longer is data. maxPromptName bounds the name of a prompt,
	// for which the specification has no bound, in characters.
	maxURI        = 8 << 10
	maxPromptName = 512
)

// readResource reads one definition. What a resource can be used without is dropped silently if it has the wrong type.
func readResource(raw []byte) (r messages.Resource, uri, reason string) {
	if !rawjson.IsObject(raw) {
		return r, "", "the definition is not an object"
	}
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
		case "size":
			r.Size = sizeOf(value)
		case "icons":
			r.Icons = readIcons(value)
		case "annotations":
			r.Annotations = readResourceAnnotations(value)
		}
	}
	r.URI, reason = readKey(address, "URI", maxURI)
	return r, r.URI, tooLarge(raw, reason)
}

func readTemplate(raw []byte) (t messages.ResourceTemplate, uri, reason string) {
	if !rawjson.IsObject(raw) {
		return t, "", "the definition is not an object"
	}
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
	t.URITemplate, reason = readKey(address, "URI template", maxURI)
	return t, t.URITemplate, tooLarge(raw, reason)
}

func readPrompt(raw []byte) (p messages.Prompt, name, reason string) {
	if !rawjson.IsObject(raw) {
		return p, "", "the definition is not an object"
	}
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
	if p.Name, reason = readKey(key, "name", maxURI); reason == "" && utf8.RuneCountInString(p.Name) > maxPromptName {
		reason = "the name is longer than " + strconv.Itoa(maxPromptName) + " characters"
	}
	return p, p.Name, tooLarge(raw, reason)
}

// readPromptArguments leaves out what has no name: nobody can give it a value.
func readPromptArguments(raw []byte) (args []messages.PromptArgument) {
	if !rawjson.IsArray(raw) {
		return nil
	}
	list := rawjson.ArrayAt(raw, 0, 0)
	for list.Next() {
		value := list.Skip()
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
				a.Required = isTrue(value)
			}
		}
		if a.Name != "" && !strings.ContainsRune(a.Name, utf8.RuneError) {
			args = append(args, a)
		}
	}
	return args
}

// readKey is what a resource, a template or a prompt is called by.
func readKey(raw []byte, what string, maxBytes int) (key, reason string) {
	key, ok := rawjson.Text(raw)
	switch {
	case rawjson.IsNull(raw):
		return "", "it has no " + what
	case !ok:
		return "", "the " + what + " is not a string"
	case key == "":
		return "", "the " + what + " is empty"
	case len(key) > maxBytes:
		return key, "the " + what + " is longer than " + strconv.Itoa(maxBytes) + " bytes"
	case strings.ContainsRune(key, utf8.RuneError):
		// The decoded text could not be sent back as the server wrote it.
		return key, "the " + what + " holds characters that are not valid"
	}
	return key, ""
}

// tooLarge adds the bound that all definitions have.
func tooLarge(raw []byte, reason string) string {
	if reason == "" && len(raw) > maxDefinition {
		return "the definition is larger than 1 MiB"
	}
	return reason
}

// sizeOf is a size in bytes: nil for what is no whole number that an int64 holds, or negative.
func sizeOf(value []byte) *int64 {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		f, err := strconv.ParseFloat(string(value), 64) // 1024.0 and 1e3 are whole too
		if err != nil || f != float64(int64(f)) || f >= 1<<53 {
			return nil
		}
		n = int64(f)
	}
	if n < 0 {
		return nil
	}
	return &n
}

// readResourceAnnotations is nil if nothing of it is understood.
//
// 2025-11-25, Annotations: audience has the "Valid values "user" and "assistant"", priority is a "number from 0.0 to 1.0".
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
			a.Audience = slices.DeleteFunc(textsOf(value, 16), func(role string) bool {
				return role != "user" && role != "assistant"
			})
		case "priority":
			a.Priority = nil
			if p, err := strconv.ParseFloat(string(value), 64); err == nil && p >= 0 && p <= 1 {
				a.Priority = &p
			}
		case "lastModified":
			a.LastModified, _ = rawjson.Text(value)
		}
	}
	if len(a.Audience) == 0 && a.Priority == nil && a.LastModified == "" {
		return nil
	}
	return &a
}
