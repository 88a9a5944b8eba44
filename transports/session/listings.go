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

// Listing is one list of a server: resources, resource templates or prompts. Its receivers share it and must not
// change it.
type Listing[T any] struct {
	// Items are in the server's order, without a Server; no URI or name stands twice.
	Items []T
	// Quarantined are the entries that cannot be used, with the reason. Their names are neutralised.
	Quarantined []messages.QuarantinedTool
	// Public is true if the server lets the list be shared between users (cacheScope "public" on every page). A
	// session is one authorization context, so within it every list may be cached; a program that gives a list to
	// other users must look here.
	Public bool
}

// listCaches are the lists that a session caches. They are made together, on first use.
type listCaches struct {
	resources listCache[messages.Resource]
	templates listCache[messages.ResourceTemplate]
	prompts   listCache[messages.Prompt]
}

// ensureListCaches returns the caches of the session. The first caller makes them, because most servers have tools
// and nothing else; of two first callers one wins.
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

// invalidateLists drops the lists that may have changed. o is nil if no caller has asked for any list: then there is
// nothing to drop.
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

// usedLists reports whether a caller has asked for resources or templates, and for prompts.
func (o *listCaches) usedLists() (resources, prompts bool) {
	if o == nil {
		return false, false
	}
	return o.resources.wasUsed() || o.templates.wasUsed(), o.prompts.wasUsed()
}

// Resources returns all pages of the server's list of resources. A server that declares no resources has an empty
// list and is not asked. A resource that cannot be used is quarantined.
//
// The list is fetched on first use and cached as long as it is valid: until the server announces a change, and in the
// modern era as long as the server said (the shortest ttlMs of its pages; not at all without one). A server of the
// legacy era that does not announce changes is asked again after 5 s; one that is reached over HTTP after 1 min in
// any case, because there a server may declare announcements and offer no stream to send them on. Callers at the same
// time share one fetch, which may take up to 2 min and is not ended by the end of a caller's ctx. An error is not
// cached.
//
// An error is a *messages.Error with Op "read" and an Outcome.
func (s *Session) Resources(ctx context.Context) (Listing[messages.Resource], error) {
	return s.ensureListCaches().resources.get(ctx)
}

// ResourceTemplates returns the server's resource templates, cached like [Session.Resources].
func (s *Session) ResourceTemplates(ctx context.Context) (Listing[messages.ResourceTemplate], error) {
	return s.ensureListCaches().templates.get(ctx)
}

// Prompts returns the server's prompts, cached like [Session.Resources].
func (s *Session) Prompts(ctx context.Context) (Listing[messages.Prompt], error) {
	return s.ensureListCaches().prompts.get(ctx)
}

// The kinds of the cached lists.
var (
	resourceKind = listKind[messages.Resource]{
		method: "resources/list", member: "resources", singular: "resource", plural: "resources", unique: "URI", read: readResource,
	}
	templateKind = listKind[messages.ResourceTemplate]{
		method: "resources/templates/list", member: "resourceTemplates", singular: "resource template",
		plural: "resource templates", unique: "URI template", read: readTemplate,
		optional: true, // many servers with resources have no templates and do not know the method
	}
	promptKind = listKind[messages.Prompt]{
		method: "prompts/list", member: "prompts", singular: "prompt", plural: "prompts", unique: "name", read: readPrompt,
	}
)

const (
	// maxURI bounds a URI and a URI template, in bytes: anything longer is data and no address. maxPromptName bounds
	// the name of a prompt, in characters; the specification has no bound.
	maxURI        = 8 << 10
	maxPromptName = 512
)

// readResource reads one definition. A member that a resource can be used without is dropped silently if it has a
// wrong type; a URI that cannot be used gives a reason.
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
	// The size is checked last: a definition without a usable URI is reported as that.
	r.URI, reason = readKey(address, "URI", maxURI)
	return r, r.URI, tooLarge(raw, reason)
}

// readTemplate reads one resource template in the same way.
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

// readPrompt reads one prompt in the same way; its key is the name.
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
	// The bound in bytes comes first, so that the characters of a huge name are not counted.
	if p.Name, reason = readKey(key, "name", maxURI); reason == "" && utf8.RuneCountInString(p.Name) > maxPromptName {
		reason = "the name is longer than " + strconv.Itoa(maxPromptName) + " characters"
	}
	return p, p.Name, tooLarge(raw, reason)
}

// readPromptArguments reads the arguments of a prompt and leaves out those without a usable name: no value can be
// given for them.
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
		// A name with a replacement character could not be sent back as the server wrote it.
		if a.Name != "" && !strings.ContainsRune(a.Name, utf8.RuneError) {
			args = append(args, a)
		}
	}
	return args
}

// readKey reads the member by which a resource, a template or a prompt is addressed. reason says why it cannot be
// used, empty if it can.
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

// tooLarge returns reason, or the reason of a definition beyond the bound that all definitions have.
func tooLarge(raw []byte, reason string) string {
	if reason == "" && len(raw) > maxDefinition {
		return "the definition is larger than 1 MiB"
	}
	return reason
}

// sizeOf reads a size in bytes; nil for a negative number and for one that is no whole number of an int64.
func sizeOf(value []byte) *int64 {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		f, err := strconv.ParseFloat(string(value), 64) // 1024.0 and 1e3 are whole numbers of JSON, too
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

// readResourceAnnotations reads the annotations of a resource; nil if they hold nothing that is known.
//
// 2025-11-25, Annotations: audience has the "Valid values "user" and "assistant"", priority is a "number from 0.0 to
// 1.0".
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
			// If the member stands twice, the last one counts, also if it is invalid.
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
