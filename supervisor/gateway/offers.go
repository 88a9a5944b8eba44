package gateway

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/joined"
	"github.com/mcpvisor/mcpvisor/transports/serve"
	wire "github.com/mcpvisor/mcpvisor/transports/session"
)

// offered returns the servers whose lists a view shows: those that are connected. No list waits for another one.
func (v *view) offered(has func(*wire.Capabilities) bool) []string {
	var servers []string
	for _, name := range v.servers() {
		if c := v.g.capabilitiesOf(name); c != nil && has(c) {
			servers = append(servers, name)
		}
	}
	return servers
}

func hasResources(c *wire.Capabilities) bool { return c.Resources }
func hasPrompts(c *wire.Capabilities) bool   { return c.Prompts }

// resources returns the resources of a view, each URI once: the first server that lists it has it. What cannot be listed is left out.
func (v *view) resources(ctx context.Context) []messages.Resource {
	servers := v.offered(hasResources)
	if len(servers) == 0 {
		return nil
	}
	list, _ := joined.ListOf(ctx, v.g.all, servers, (*supervisor.Manager).Resources)
	seen, kept := make(map[string]bool, len(list)), list[:0]
	for _, r := range list {
		if !seen[r.URI] {
			seen[r.URI] = true
			kept = append(kept, r)
		}
	}
	return kept
}

// templates returns the templates of a view, under the same rule.
func (v *view) templates(ctx context.Context) []messages.ResourceTemplate {
	servers := v.offered(hasResources)
	if len(servers) == 0 {
		return nil
	}
	list, _ := joined.ListOf(ctx, v.g.all, servers, (*supervisor.Manager).ResourceTemplates)
	seen, kept := make(map[string]bool, len(list)), list[:0]
	for _, t := range list {
		if !seen[t.URITemplate] {
			seen[t.URITemplate] = true
			kept = append(kept, t)
		}
	}
	return kept
}

// prompts returns the prompts of a view, with the names that it shows.
func (v *view) prompts(ctx context.Context) (list []messages.Prompt, shown []string) {
	servers := v.offered(hasPrompts)
	if len(servers) == 0 {
		return nil, nil
	}
	list, _ = joined.ListOf(ctx, v.g.all, servers, (*supervisor.Manager).Prompts)
	all := make([]named, len(list))
	for i := range list {
		all[i] = named{list[i].Server, list[i].Name}
	}
	return list, v.showNames(all)
}

// listResult is the answer to a list: its definitions, and in the modern era the hints for caches.
func listResult(r *serve.Request, member string, n int, definition func(i int) []byte) ([]byte, *serve.Error) {
	b := append([]byte(`{"`+member), `":[`...)
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, definition(i)...)
	}
	b = append(b, ']')
	if r.Modern() {
		b = append(b, `,"resultType":"complete",`+noCache...)
	}
	return append(b, '}'), nil
}

// onlyPage refuses the cursor of a list that has one page: nobody was given it.
func onlyPage(r *serve.Request) *serve.Error {
	if rawjson.IsNull(rawjson.Member(r.Params, "cursor")) {
		return nil
	}
	return serve.InvalidParams("the cursor is not one of this list")
}

func (g *Gateway) listResources(ctx context.Context, v *view, r *serve.Request) ([]byte, *serve.Error) {
	if e := onlyPage(r); e != nil {
		return nil, e
	}
	list := v.resources(ctx)
	for i := range list {
		v.noteOwner(list[i].URI, list[i].Server)
	}
	v.noteResources(ctx, list)
	return listResult(r, "resources", len(list), func(i int) []byte { return list[i].Raw })
}

// noteResources remembers that an agent knows the resources and templates, which have one notification; list is what it was given.
func (v *view) noteResources(ctx context.Context, list []messages.Resource) {
	v.mu.Lock()
	known := v.offers.resources != nil
	v.mu.Unlock()
	if known {
		return
	}
	if list == nil {
		list = v.resources(ctx)
	}
	sum := sumOfResources(list, v.templates(ctx))
	v.noteListed(func(known *offerSums) {
		if known.resources == nil {
			known.resources = sum
		}
	})
}

func (g *Gateway) listTemplates(ctx context.Context, v *view, r *serve.Request) ([]byte, *serve.Error) {
	if e := onlyPage(r); e != nil {
		return nil, e
	}
	list := v.templates(ctx)
	v.noteResources(ctx, nil)
	return listResult(r, "resourceTemplates", len(list), func(i int) []byte { return list[i].Raw })
}

func (g *Gateway) listPrompts(ctx context.Context, v *view, r *serve.Request) ([]byte, *serve.Error) {
	if e := onlyPage(r); e != nil {
		return nil, e
	}
	list, shown := v.prompts(ctx)
	v.noteListed(func(known *offerSums) {
		if known.prompts == nil {
			known.prompts = sumOfPrompts(list, shown)
		}
	})
	return listResult(r, "prompts", len(list), func(i int) []byte { return withName(list[i].Raw, list[i].Name, shown[i]) })
}

// readResource reads a resource of its owner.
func (g *Gateway) readResource(ctx context.Context, v *view, r *serve.Request) ([]byte, *serve.Error) {
	raw := rawjson.Member(r.Params, "uri")
	uri, ok := rawjson.Text(raw)
	if !ok || uri == "" {
		return nil, serve.InvalidParams("resources/read names no uri")
	}
	server, why := v.ownerOf(ctx, uri)
	if server == "" {
		return nil, unknownResource(uri, why, r.Modern())
	}
	fields := append(append([]byte(`"uri":`), raw...), nil...)
	return g.forwardRead(ctx, r, named{server, uri}, uri, fields, takeParams(r.Params, "uri"), true)
}

// unknownResource is the error of a resource without an owner; why is empty if no server can have it.
func unknownResource(uri, why string, modern bool) *serve.Error {
	data := append(rawjson.AppendText([]byte(`{"uri":`), uri), '}')
	return &serve.Error{Code: notFoundCode(modern), Message: "Resource not found" + why, Data: data}
}

// forwardRead sends a request on, with fields and what in has of its params, and returns the server's own result. cached results get the
// hints that the modern era demands.
func (g *Gateway) forwardRead(ctx context.Context, r *serve.Request, to named, name string, fields []byte, in input, cached bool) ([]byte, *serve.Error) {
	modern, method := r.Modern(), r.Method
	send := func(ctx context.Context, wishes wire.Options, fields []byte) ([]byte, error) {
		m, ctx := g.all.Owner(ctx, to.server)
		result, err := m.Forward(ctx, to.server, method, name, fields, func(o *wire.Options) { *o = wishes })
		if err == nil && cached && modern {
			result = withCacheHints(result)
		}
		return result, err
	}
	return g.performRequest(ctx, r, to, in, fields, sender{send, func(err error) ([]byte, *serve.Error) { return nil, failedRead(err, modern) }})
}

// withCacheHints returns a result with the hints, unless it has them or asks for input.
func withCacheHints(result json.RawMessage) json.RawMessage {
	kind := string(rawjson.Member(result, "resultType"))
	if rawjson.Member(result, "ttlMs") != nil || kind != "" && kind != `"complete"` {
		return result
	}
	i := rawjson.SkipSpace(result, 1)
	b := append([]byte(`{`+noCache), ',')
	if result[i] == '}' {
		b = b[:len(b)-1]
	}
	return append(b, result[i:]...)
}

// findPrompt returns where the name of a prompt leads.
func (v *view) findPrompt(ctx context.Context, name string) (to named, ok bool) {
	if v.server != "" && len(name) <= v.g.naming.Limit-len(mcpPrefix) {
		return named{v.server, name}, true
	}
	if within := v.scope.Load(); within.prefix == PrefixAlways {
		if to.server, to.name, ok = v.g.splitName(name); ok && v.g.all.Has(to.server) && within.showsServer(to.server) {
			return to, true
		}
	}
	to, ok = v.listedPrompt(ctx, name)
	switch {
	case ok:
		return to, true
	case v.server != "":
		return named{v.server, name}, true
	case v.g.awaitFirstAttempts(ctx):
		if to, ok = v.listedPrompt(ctx, name); ok {
			return to, true
		}
	}
	// A name that is in no list can only belong to the one server that has prompts at all, which says whether it knows it.
	if servers := v.offered(hasPrompts); len(servers) == 1 {
		return named{servers[0], strings.TrimPrefix(name, servers[0]+"__")}, true
	}
	return named{}, false
}

// listedPrompt returns where a name leads that is in a list.
func (v *view) listedPrompt(ctx context.Context, name string) (named, bool) {
	list, shown := v.prompts(ctx)
	for i := range list {
		if shown[i] == name {
			return named{list[i].Server, list[i].Name}, true
		}
	}
	return named{}, false
}

// getPrompt fills a prompt.
func (g *Gateway) getPrompt(ctx context.Context, v *view, r *serve.Request) ([]byte, *serve.Error) {
	shown, ok := rawjson.Text(rawjson.Member(r.Params, "name"))
	if !ok || shown == "" {
		return nil, serve.InvalidParams("prompts/get names no prompt")
	}
	to, ok := v.findPrompt(ctx, shown)
	if !ok {
		return nil, serve.InvalidParams("Unknown prompt: " + messages.Line(shown, 200))
	}
	fields := rawjson.AppendText([]byte(`"name":`), to.name)
	return g.forwardRead(ctx, r, to, to.name, fields, takeParams(r.Params, "name"), false)
}

// completeArgument asks the owner of a prompt or of a template for proposals.
func (g *Gateway) completeArgument(ctx context.Context, v *view, r *serve.Request) ([]byte, *serve.Error) {
	ref := rawjson.Member(r.Params, "ref")
	if !rawjson.IsObject(ref) {
		return nil, serve.InvalidParams("completion/complete names no ref")
	}
	var to named
	fields := []byte(`"ref":`)
	if shown, ok := rawjson.Text(rawjson.Member(ref, "name")); ok {
		if to, ok = v.findPrompt(ctx, shown); !ok {
			return nil, serve.InvalidParams("Unknown prompt: " + messages.Line(shown, 200))
		}
		fields = append(fields, withName(ref, shown, to.name)...)
	} else {
		uri, _ := rawjson.Text(rawjson.Member(ref, "uri"))
		server, why := v.ownerOf(ctx, uri)
		if uri == "" || server == "" {
			return nil, serve.InvalidParams("Unknown resource template: " + messages.Line(uri, 200) + why)
		}
		to = named{server, uri}
		fields = append(fields, ref...)
	}
	return g.forwardRead(ctx, r, to, "", fields, takeParams(r.Params, "ref"), false)
}
