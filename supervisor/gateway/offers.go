package gateway

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/transports/serve"
	wire "github.com/mcpvisor/mcpvisor/transports/session"
)

// A listPart has the entries of one kind that one server lists. Sessions keep their lists, so a part is the same as long as its server
// says nothing else: it is known by the address of its first entry, and looked at only if that is a new one.
type listPart struct {
	server string
	first  any // a pointer into the list of the session, nil if it is empty
	n      int
	// entry returns the name, or the URI, and the definition as the server wrote it.
	entry func(i int) (name string, definition []byte)
}

// IsSame implements supervisor.KeptList.
func (p listPart) IsSame(other supervisor.KeptList) bool {
	o, ok := other.(listPart)
	return ok && p.server == o.server && p.first == o.first && p.n == o.n
}

// Size implements supervisor.KeptList.
func (p listPart) Size() (n int) {
	for i := range p.n {
		name, definition := p.entry(i)
		n += len(name) + len(definition)
	}
	return n
}

// partReader returns a function that takes the part from the session of a server.
func partReader[T any](list func(*wire.Session, context.Context) (wire.Listing[T], error), entry func(*T) (string, []byte)) func(context.Context, *wire.Session) (listPart, error) {
	return func(ctx context.Context, s *wire.Session) (p listPart, err error) {
		l, err := list(s, ctx)
		if err != nil || len(l.Items) == 0 {
			return listPart{}, err
		}
		return listPart{first: &l.Items[0], n: len(l.Items), entry: func(i int) (string, []byte) { return entry(&l.Items[i]) }}, nil
	}
}

// offerList is the prompts, the resources or the templates of a view: rendered once for the parts that it has, and shared. It is
// immutable.
type offerList struct {
	*pages
	prefix Prefix
	parts  []listPart
	// names are those that are shown, in the order of the list, and leads says where each of them leads.
	names []string
	leads map[string]named
}

// isOf reports whether a list was made of these parts, with this rule for names.
func (l *offerList) isOf(prefix Prefix, parts []listPart) bool {
	return l != nil && l.prefix == prefix && slices.EqualFunc(l.parts, parts, func(a, b listPart) bool {
		return a.IsSame(b)
	})
}

// offersOf returns a list of a view as its servers have it now: of those that are connected, because no list waits for another one, and of
// lazy ones that rest, as they listed it last. What cannot be listed is left out. A server that has said nothing new costs a look at what
// its session keeps; one that is silent is waited for until due.
func (v *view) offersOf(ctx context.Context, kind listKind, due time.Time) *offerList {
	prefix := v.prefixWithin(v.scope.Load())
	parts := v.gatherParts(ctx, kind, due)
	if l := v.offered[kind].Load(); l.isOf(prefix, parts) {
		return l
	}
	if v.principal != "" && !slices.ContainsFunc(parts, func(p listPart) bool { return v.keyOf(p.server, "").principal != "" }) {
		// Without a server that has instances, the principal sees what everybody sees: one rendering serves them all.
		l := v.commonView().renderOffers(kind, prefix, parts)
		v.offered[kind].Store(l)
		return l
	}
	return v.renderOffers(kind, prefix, parts)
}

// listedBy returns the servers that have a list, of those that are connected or rest.
func (v *view) listedBy(kind listKind) (servers []string) {
	for _, name := range v.servers() {
		if c := v.g.capabilitiesOf(name); c != nil && lists[kind].has(c) || c == nil && v.g.all.Of(name).Rests(name) {
			servers = append(servers, name)
		}
	}
	return servers
}

// readLazily has the prompts, resources and templates of a lazy server read, so that they are remembered when it rests: an agent may come no
// sooner than then.
func (g *Gateway) readLazily(server string) {
	s, err := g.all.Of(server).ServerStatus(server)
	if err != nil || s.Status != messages.Connected || s.Config == nil || s.Config.Connect != messages.Lazy || s.Config.Share == messages.SharePrincipal || s.InstanceOf != "" {
		return
	}
	g.askBehind(func(ctx context.Context) {
		for kind := range listKinds {
			if c := g.capabilitiesOf(server); c != nil && kind != toolList && lists[kind].has(c) {
				_, _ = g.readPart(ctx, kind, server)
			}
		}
	})
}

// renderOffers returns the list of these parts: the one that the view has, if it is of them, else a new one.
func (v *view) renderOffers(kind listKind, prefix Prefix, parts []listPart) *offerList {
	v.render.Lock()
	defer v.render.Unlock()
	if l := v.offered[kind].Load(); l.isOf(prefix, parts) {
		return l
	}
	var all []named
	var definitions [][]byte
	for _, p := range parts {
		for i := range p.n {
			name, definition := p.entry(i)
			all, definitions = append(all, named{p.server, name}), append(definitions, definition)
		}
	}
	// URIs are never changed: the first server that lists one has it.
	shown := make([]string, len(all))
	if kind == promptList {
		shown = v.g.namesOf(prefix, all)
	}
	l := &offerList{prefix: prefix, parts: parts, leads: make(map[string]named, len(all))}
	kept := definitions[:0]
	for i, to := range all {
		if kind != promptList {
			shown[i] = to.name
		}
		if _, doubled := l.leads[shown[i]]; !doubled {
			l.names, l.leads[shown[i]] = append(l.names, shown[i]), to
			kept = append(kept, withName(definitions[i], to.name, shown[i]))
		}
	}
	l.pages = renderPages(kind, kept)
	v.offered[kind].Store(l)
	return l
}

// readResource reads a resource of its owner.
func (g *Gateway) readResource(ctx context.Context, v *view, r *serve.Request) ([]byte, *serve.Error) {
	raw := rawjson.Member(r.Params, "uri")
	uri, ok := rawjson.Text(raw)
	if !ok || uri == "" {
		return nil, serve.InvalidParams("resources/read names no uri")
	}
	to, why := v.ownerOf(ctx, offer{resourceList, uri})
	if to.server == "" {
		return nil, unknownResource(uri, why, r.Modern())
	}
	fields := append([]byte(`"uri":`), raw...)
	return g.forwardRead(ctx, &outgoing{r: r, to: to, arguments: fields, input: takeParams(r.Params, "uri")}, uri, true)
}

// unknownResource is the error of a resource without an owner; why is empty if no server can have it.
func unknownResource(uri, why string, modern bool) *serve.Error {
	data := append(rawjson.AppendText([]byte(`{"uri":`), uri), '}')
	return &serve.Error{Code: notFoundCode(modern), Message: "Resource not found" + why, Data: data}
}

// forwardRead sends a request on, and returns the server's own result. cached results get the hints that the modern era demands.
func (g *Gateway) forwardRead(ctx context.Context, q *outgoing, name string, cached bool) ([]byte, *serve.Error) {
	modern, method := q.r.Modern(), q.r.Method
	q.send = func(ctx context.Context, wishes *wire.Options) ([]byte, error) {
		m, ctx := g.all.Owner(ctx, q.to.server)
		result, err := m.Forward(ctx, q.to.server, method, name, q.arguments, func(o *wire.Options) { *o = *wishes })
		if err == nil && cached && modern {
			result = withCacheHints(result)
		}
		return result, err
	}
	q.fail = func(err error) ([]byte, *serve.Error) { return nil, failedRead(err, modern) }
	return g.performRequest(ctx, q)
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

// findPrompt returns where the name of a prompt leads; why says of one that leads nowhere which servers might have it.
func (v *view) findPrompt(ctx context.Context, name string) (to named, why string) {
	if v.server != "" {
		// A name that is too long for models is shown shortened: to who has listed it.
		if l := v.offered[promptList].Load(); l != nil && l.leads[name].server != "" {
			return l.leads[name], ""
		}
		return named{v.server, name}, ""
	}
	if within := v.scope.Load(); within.prefix == PrefixAlways {
		if server, own, ok := v.g.splitName(name); ok && v.g.all.Has(server) && within.showsServer(server) {
			return named{server, own}, ""
		}
	}
	return v.ownerOf(ctx, offer{promptList, name})
}

// getPrompt fills a prompt.
func (g *Gateway) getPrompt(ctx context.Context, v *view, r *serve.Request) ([]byte, *serve.Error) {
	shown, ok := rawjson.Text(rawjson.Member(r.Params, "name"))
	if !ok || shown == "" {
		return nil, serve.InvalidParams("prompts/get names no prompt")
	}
	to, why := v.findPrompt(ctx, shown)
	if to.server == "" {
		return nil, unknownPrompt(shown, why)
	}
	fields := rawjson.AppendText([]byte(`"name":`), to.name)
	return g.forwardRead(ctx, &outgoing{r: r, to: to, arguments: fields, input: takeParams(r.Params, "name")}, to.name, false)
}

// unknownPrompt is the error of a prompt that leads nowhere.
func unknownPrompt(shown, why string) *serve.Error {
	return serve.InvalidParams("Unknown prompt: " + messages.Line(shown, 200) + why)
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
		var why string
		if to, why = v.findPrompt(ctx, shown); to.server == "" {
			return nil, unknownPrompt(shown, why)
		}
		fields = append(fields, withName(ref, shown, to.name)...)
	} else {
		uri, _ := rawjson.Text(rawjson.Member(ref, "uri"))
		var why string
		if to, why = v.ownerOf(ctx, offer{resourceList, uri}); uri == "" || to.server == "" {
			return nil, serve.InvalidParams("Unknown resource template: " + messages.Line(uri, 200) + why)
		}
		fields = append(fields, ref...)
	}
	return g.forwardRead(ctx, &outgoing{r: r, to: to, arguments: fields, input: takeParams(r.Params, "ref")}, "", false)
}
