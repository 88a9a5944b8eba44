package supervisor

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/yosida95/uritemplate/v3"

	"github.com/mcpvisor/mcpvisor/actors"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/listindex"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// ResourceResult is the answer to the read of a resource.
type ResourceResult struct {
	// Server is the id of the server that answered, URI the one that was read.
	Server, URI string
	// Raw is the server's result object, byte for byte. It is untrusted.
	Raw json.RawMessage
}

// ResourceContent is one part of a resource: text, or bytes.
type ResourceContent struct {
	URI      string `json:"uri"`
	MIMEType string `json:"mimeType,omitempty"`
	Text     string `json:"text,omitempty"`
	// Blob has the bytes of a part that is no text, in base64: see Bytes.
	Blob string `json:"blob,omitempty"`
	// Raw is the whole part as sent.
	Raw json.RawMessage `json:"-"`
}

// Bytes returns what the part holds: its decoded Blob, or its text. The error says that the server's base64 is invalid.
func (c *ResourceContent) Bytes() ([]byte, error) {
	if c.Blob == "" {
		return []byte(c.Text), nil
	}
	return base64.StdEncoding.DecodeString(c.Blob)
}

// Contents returns the parts of the resource; nil if the result cannot be decoded, which Raw still shows.
func (r *ResourceResult) Contents() []ResourceContent {
	if r == nil {
		return nil
	}
	list, err := partsOf(r.Raw, "contents")
	if err != nil {
		return nil
	}
	parts := make([]ResourceContent, len(list))
	for i, raw := range list {
		parts[i] = resourceContentOf(raw)
	}
	return parts
}

// Text returns the text parts, each on its own lines, with a short remark in place of each part that is no text. The bytes are the
// server's: messages.Printable makes them fit for a terminal.
func (r *ResourceResult) Text() string {
	texts := []string{}
	for _, c := range r.Contents() {
		if c.Blob != "" {
			c.Text = fmt.Sprintf("[%s %s, %d bytes of base64]", c.URI, c.MIMEType, len(c.Blob))
		}
		texts = append(texts, c.Text)
	}
	return strings.Join(texts, "\n")
}

// ReadServerResource reads a resource of a server. A lazy server is connected first. The error is an *Error with an
// Outcome; one that says that there is no such resource is ErrUnknownResource.
//
// A read changes nothing, so after a lost connection it is sent once more on the next connection, unless the person has answered
// a question of the server about it: that question would be asked again.
func (m *Manager) ReadServerResource(ctx context.Context, server, uri string, opts ...CallOption) (*ResourceResult, error) {
	return m.readResource(ctx, server, uri, opts)
}

// readResource sends resources/read to a server, or, if that is empty, to the one that is found.
func (m *Manager) readResource(ctx context.Context, server, uri string, opts []CallOption) (*ResourceResult, error) {
	r := &actors.Request{Method: actors.ReadResource, Server: server, Name: uri, Repeatable: true,
		Send: func(ctx context.Context, s *session.Session, r *actors.Request) (err error) {
			r.Answer.Raw, err = s.ReadResource(ctx, r.Name, r.Options)
			return err
		}}
	if err := m.handleWith(ctx, r, opts); err != nil {
		return nil, err
	}
	return &ResourceResult{Server: r.Server, URI: r.Name, Raw: r.Result}, nil
}

// ReadResource reads a resource of the server that offers it: the connected server that lists the URI, else the one that has a
// template which it fits, if the template begins with a literal scheme. No server is connected for the search. The error is
// ErrUnknownResource if no server offers it, and ErrInvalid with their names if several do; ReadServerResource names one.
// A URI that contains a secret of its owner should be read with ReadServerResource, because the search may give it to a server
// that only claims to offer it: the real owner may not be connected.
func (m *Manager) ReadResource(ctx context.Context, uri string, opts ...CallOption) (*ResourceResult, error) {
	return m.readResource(ctx, "", uri, opts)
}

// findOffering returns the one server that offers a resource. It looks into the lists of the connected servers, then into the index for
// those that are not connected, then at the templates: a list names the resource exactly, a template only fits it.
func (m *Manager) findOffering(ctx context.Context, uri string) (string, error) {
	if uri == "" {
		return "", &Error{Op: "read", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid, Text: "the URI is empty"}
	}
	// The owners are read before the lists: if an account changes meanwhile, the entry counts for the old one and is dropped.
	before := map[string]listindex.Owner{}
	for _, server := range m.Servers() {
		before[server], _ = m.listOwnerOf(server)
	}
	listed, templates := m.searchOffers(ctx, uri)
	for i := range listed {
		m.index.SetResources(listed[i].server, before[listed[i].server], listed[i].items, listed[i].err)
		m.forgetIfRemoved(listed[i].server)
	}
	// The exact list decides before any template.
	owners := serversWith(listed, func(r *messages.Resource) bool { return r.URI == uri })
	if len(owners) == 0 {
		// A server that is not connected now may have listed it; the read then connects it or fails with its name.
		owners = slices.DeleteFunc(m.index.ServersListing(uri, m.listOwnerOf), func(server string) bool { return isHidden(ctx, server) })
	}
	// A server that failed may be the one that has the resource: the error names it.
	failed := failedServers(listed)
	if len(owners) == 0 {
		failed = append(failed, failedServers(templates)...)
		// The list of a hostile server may have very many templates, and each comparison costs time.
		for i := range templates {
			templates[i].items = templates[i].items[:min(len(templates[i].items), maxTried)]
		}
		owners = serversWith(templates, func(t *messages.ResourceTemplate) bool {
			return ctx.Err() == nil && TemplateFits(t.URITemplate, uri)
		})
	}
	shown := messages.Line(plainURI(uri), 200)
	switch len(owners) {
	case 1:
		return owners[0], nil
	case 0:
		e := &Error{Op: "read", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid,
			Text: fmt.Sprintf("no connected server offers the resource %q", shown),
			Fix:  "list the resources, or name the server that has it", Err: messages.ErrUnknownResource}
		// A search that was cut short says nothing about the resource.
		if err := ctx.Err(); err != nil {
			e.Class, e.Text, e.Err = messages.ClassOf(err), "the context ended before it was known who offers the resource", err
		} else if len(failed) > 0 {
			slices.Sort(failed)
			e.Text += "; not known of " + strings.Join(slices.Compact(failed), ", ")
		}
		return "", e
	}
	return "", &Error{Op: "read", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid,
		Text: fmt.Sprintf("several servers offer the resource %q: %s", shown, strings.Join(owners, ", ")),
		Fix:  "name the server that is meant"}
}

// plainURI returns a URI as errors and logs may show it: without the parts that often hold secrets.
func plainURI(uri string) string {
	// Query and user information are the usual places of tokens.
	if u, err := url.Parse(uri); err == nil && (u.User != nil || u.RawQuery != "") {
		u.User, u.RawQuery = nil, ""
		return u.String() + " (shortened)"
	}
	return uri
}

// listOwnerOf returns whose lists a server gives now.
func (m *Manager) listOwnerOf(server string) (b listindex.Owner, known bool) {
	cell := m.shared.CellOf(server)
	if cell == nil {
		return b, false
	}
	b.Spec = cell.View().Spec
	b.Account = m.credentials.FindCredential(server).ActingAccount()
	return b, true
}

func (m *Manager) isConfigured(server string) bool { return m.shared.CellOf(server) != nil }

// serversWith returns the servers of which at least one item matches.
func serversWith[T any](parts []listPart[T], matches func(*T) bool) (servers []string) {
	for i := range parts {
		for k := range parts[i].items {
			if matches(&parts[i].items[k]) {
				servers = append(servers, parts[i].server)
				break
			}
		}
	}
	return servers
}

// failedServers returns the servers that gave an error in the place of their list.
func failedServers[T any](parts []listPart[T]) (servers []string) {
	for i := range parts {
		if parts[i].err != nil {
			servers = append(servers, parts[i].server)
		}
	}
	return servers
}

const (
	// maxTried bounds how many templates of one server are compared with a URI.
	maxTried = 1_000
	// maxNames bounds the names in the expressions of a template that is compared. The regular expression that the library makes
	// grows with them, so that one of a few KiB takes seconds. Real templates have one to four.
	maxNames = 16
)

// hasTooManyNames reports whether a template has more than maxNames names. It counts commas, which is exact enough for a bound.
func hasTooManyNames(template string) bool {
	// The template is walked expression by expression; an unclosed one counts as well.
	for names := 0; names <= maxNames; {
		_, rest, more := strings.Cut(template, "{")
		if !more {
			return false
		}
		var inside string
		inside, template, _ = strings.Cut(rest, "}")
		names += 1 + strings.Count(inside, ",")
	}
	return true
}

// literalScheme matches the beginning of a template that names its scheme: one that begins with an expression would fit the URIs
// of all servers.
var literalScheme = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`) })

// TemplateFits reports whether a URI could have been made from a template (RFC 6570). A template that cannot be read, or exceeds
// the bounds, fits no URI. The match takes time linear in the URI: it is Go's regular expression.
func TemplateFits(template, uri string) (ok bool) {
	defer func() {
		// The library may panic on a template that it did not expect; the template comes from a server.
		if recover() != nil {
			ok = false
		}
	}()
	// A template without expressions is a plain URI.
	if !strings.Contains(template, "{") {
		return template == uri
	}
	if hasTooManyNames(template) || !literalScheme().MatchString(template) {
		return false
	}
	t, err := uritemplate.New(template)
	return err == nil && t.Regexp().MatchString(uri)
}

// SubscribeResource subscribes to a resource of a server: an event of kind EventResourceUpdated follows each update (Watch),
// until UnsubscribeResource or the server's removal. Each new connection subscribes again.
// Updates of one resource within 100 ms become one event. It returns when the server has agreed. At most 1,024
// resources of a server can be subscribed to. A lazy server is connected first, and is not disconnected for idleness while
// there is a subscription.
func (m *Manager) SubscribeResource(ctx context.Context, server, uri string) error {
	if ctx == nil {
		return refusal.NilContextError("read", server, "")
	}
	return m.calls.Subscribe(ctx, server, uri)
}

// UnsubscribeResource ends the subscription of SubscribeResource, for all callers. A server that is not connected need not agree.
func (m *Manager) UnsubscribeResource(ctx context.Context, server, uri string) error {
	if ctx == nil {
		return refusal.NilContextError("read", server, "")
	}
	if m.closing.Load() {
		return refusal.ClosedError("read")
	}
	if m.shared.CellOf(server) == nil {
		return m.unknownServerError("read", server)
	}
	return m.calls.Unsubscribe(ctx, server, uri)
}
