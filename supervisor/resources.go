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
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// ResourceResult is what a read of a resource brought.
type ResourceResult struct {
	// Server is who was asked, URI for what.
	Server, URI string
	// Raw is the server's result object, byte for byte. It is untrusted.
	Raw json.RawMessage
}

// ResourceContent is one part of a resource: text, or bytes.
type ResourceContent struct {
	URI      string `json:"uri"`
	MIMEType string `json:"mimeType,omitempty"`
	Text     string `json:"text,omitempty"`
	// Blob is the bytes of a part that is no text, in base64: see Bytes.
	Blob string `json:"blob,omitempty"`
	// Raw is the whole part as sent.
	Raw json.RawMessage `json:"-"`
}

// Bytes is what the part holds: its decoded Blob, or its text. The error says that the server's base64 is none.
func (c *ResourceContent) Bytes() ([]byte, error) {
	if c.Blob == "" {
		return []byte(c.Text), nil
	}
	return base64.StdEncoding.DecodeString(c.Blob)
}

// Contents is the parts of the resource; nil if the result cannot be decoded, which its Raw still shows.
func (r *ResourceResult) Contents() []ResourceContent {
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

// Text is the text parts, one after the other, with a short remark in place of each part that is no text. It is as the
// server sent it: messages.Printable makes it fit for a terminal.
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
// A read changes nothing, so that one whose connection was lost is asked once more on the next connection, unless somebody
// has answered a question of the server about it.
func (m *Manager) ReadServerResource(ctx context.Context, server, uri string, opts ...CallOption) (*ResourceResult, error) {
	return m.audit.auditRead(ctx, server, uri, func(t *actors.Trace) (*ResourceResult, error) {
		return m.readResource(ctx, server, uri, t, opts)
	})
}

func (m *Manager) readResource(
	ctx context.Context, server, uri string, t *actors.Trace, opts []CallOption,
) (*ResourceResult, error) {
	res := &ResourceResult{Server: server, URI: uri}
	err := m.readTraced(ctx, server, t, func(ctx context.Context, s *session.Session) (err error) {
		res.Raw, err = s.ReadResource(ctx, uri, m.sessionOptions(opts))
		return err
	})
	if err != nil {
		return nil, err
	}
	return res, nil
}

// ReadResource reads a resource of whoever offers it: the connected server that lists the URI, else the one that has a
// template which it fits, if the template begins with a literal scheme. No server is connected to find out. The error is
// ErrUnknownResource if nobody offers it, and ErrInvalid with their names if several do: ReadServerResource says whose is
// meant. A URI that holds what is for its owner alone is read with ReadServerResource: one that has not been connected yet
// cannot be known to be its owner.
func (m *Manager) ReadResource(ctx context.Context, uri string, opts ...CallOption) (*ResourceResult, error) {
	return m.audit.auditRead(ctx, "", uri, func(t *actors.Trace) (*ResourceResult, error) {
		server, err := m.findOffering(ctx, uri)
		if err != nil {
			return nil, err
		}
		t.Found(server, "")
		return m.readResource(ctx, server, uri, t, opts)
	})
}

// findOffering finds the one server that offers a resource.
func (m *Manager) findOffering(ctx context.Context, uri string) (string, error) {
	if m.closing.Load() {
		return "", closedError("read")
	}
	if uri == "" {
		return "", &Error{Op: "read", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid, Text: "the URI is empty"}
	}
	before := map[string]listOwner{} // what is listed may be another account's already, and is then forgotten below
	for _, server := range m.Servers() {
		before[server], _ = m.listOwnerOf(server)
	}
	listed := m.resourceParts(ctx, nil)
	for i := range listed {
		m.index.setResources(listed[i].server, before[listed[i].server], listed[i].items, listed[i].err)
	}
	owners := serversWith(listed, func(r *messages.Resource) bool { return r.URI == uri })
	if len(owners) == 0 {
		owners = m.index.serversListing(uri, m.listOwnerOf) // listed by a server that is not connected now
	}
	failed := failedServers(listed)
	if len(owners) == 0 {
		templates := m.templateParts(ctx, nil)
		failed = append(failed, failedServers(templates)...)
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

// plainURI is a URI as errors and logs may say it: without what may be a secret in it.
func plainURI(uri string) string {
	if u, err := url.Parse(uri); err == nil && (u.User != nil || u.RawQuery != "") {
		u.User, u.RawQuery = nil, ""
		return u.String() + " (shortened)"
	}
	return uri
}

func (m *Manager) isConfigured(server string) bool { return m.shared.cellOf(server) != nil }

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

func failedServers[T any](parts []listPart[T]) (servers []string) {
	for i := range parts {
		if parts[i].err != nil {
			servers = append(servers, parts[i].server)
		}
	}
	return servers
}

const (
	// maxTried is how many templates of one server are compared with a URI.
	maxTried = 1_000
	// maxNames bounds the names in the expressions of a template that is compared. The regular expression that it becomes
	// grows with them, to seconds for one of a few KiB. Real templates have one to four.
	maxNames = 16
)

// hasTooManyNames reports whether a template has more names than are compared.
func hasTooManyNames(template string) bool {
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

// literalScheme begins a template that says what kind of resource it is for: one that begins with an expression would be
// for the URIs of all servers.
var literalScheme = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*:`) })

// TemplateFits reports whether a URI could have been made of a template (RFC 6570). One that cannot be read, or is beyond the bounds,
// fits nothing. The match takes time linear in the URI: it is Go's regular expression.
func TemplateFits(template, uri string) (ok bool) {
	defer func() {
		if recover() != nil { // a template that the library did not expect
			ok = false
		}
	}()
	if !strings.Contains(template, "{") {
		return template == uri
	}
	if hasTooManyNames(template) || !literalScheme().MatchString(template) {
		return false
	}
	t, err := uritemplate.New(template)
	return err == nil && t.Regexp().MatchString(uri)
}

// SubscribeResource watches a resource of a server: an event of kind EventResourceUpdated follows each update (Watch),
// until UnsubscribeResource or the server's removal, over any number of reconnects: a new connection is asked again by
// itself. Updates of one resource within 100 ms become one event. It returns when the server has agreed. At most 1,024
// resources of a server are watched. A lazy server that was let go tells nothing until it is connected again.
func (m *Manager) SubscribeResource(ctx context.Context, server, uri string) error {
	if m.closing.Load() {
		return closedError("read")
	}
	if err := m.permissions.checkRead(server); err != nil {
		return err
	}
	return m.calls.Subscribe(ctx, server, uri)
}

// UnsubscribeResource ends what SubscribeResource began, for everybody. A server that is not connected needs not be asked.
func (m *Manager) UnsubscribeResource(ctx context.Context, server, uri string) error {
	if m.closing.Load() {
		return closedError("read")
	}
	if m.shared.cellOf(server) == nil {
		return unknownServer("read", server)
	}
	return m.calls.Unsubscribe(ctx, server, uri)
}
