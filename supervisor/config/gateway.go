package config

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
)

// gatewayKey names a key of a file, beside its servers: who may use them as agents, and what each of them sees.
const gatewayKey = "gateway"

// Gateway is what a file says about the agents that mcpvisor serves.
type Gateway struct {
	// Listen is the address, HOST:PORT or unix:/PATH; empty if the file names none.
	Listen string
	// Prefix says which names of tools carry that of their server: one of Prefixes; empty means the first.
	Prefix string
	// CertFile and KeyFile hold the certificate and its private key in PEM form; empty without TLS.
	CertFile, KeyFile string
	Views             map[string]View
	Principals        map[string]Principal
	Tokens            map[string]Token
	// Source is the file; Managed is set if it is the organisation's, which then wins over every other file.
	Source  string
	Managed bool
	// Invalid says that the file has problems here, and names the first: no agent is served by half of what its author meant.
	Invalid string
}

// View is a part of the servers and of their tools.
type View struct {
	// Servers are the names of the servers; nil means all.
	Servers []string
	// serversAt is where they stand.
	serversAt Pos
	// Rules allow and deny tools, as permissions do. They restrict what the permissions leave.
	Rules access.Set
	// Prefix is as that of the Gateway; empty means that one.
	Prefix string
}

// Principal is one in whose name agents ask.
type Principal struct {
	// View is the view of its tokens that name none.
	View string
	// MaxSessions and MaxRequests bound what it has at once; 0 means the defaults of package transports/serve.
	MaxSessions, MaxRequests int
}

// Token is a bearer token by which an agent comes in. Its text stands elsewhere: exactly one of File, FromEnv and Command is set.
type Token struct {
	// Principal is in whose name the agent asks, View what it sees; empty means all.
	Principal, View string
	File, FromEnv   string
	// Command prints the token: a program and its arguments.
	Command []string
}

// Prefixes lists the words for the names of tools, the default first.
var Prefixes = []string{"always", "conflict", "never"}

// The keys of gateway, of a view, of a principal, and of a token.
var (
	gatewayKeys   = []string{"listen", "prefix", "tls", "views", "principals", "tokens"}
	viewKeys      = []string{"servers", "allow", "deny", "default", "prefix"}
	principalKeys = []string{"view", "maxSessions", "maxRequests"}
	tokenKeys     = []string{"principal", "view", "file", "fromEnv", "command"}
)

const gatewayExample = `write {"views": {"docs": {"servers": ["files"]}}, "tokens": {"laptop": {"view": "docs", "file": "~/laptop.token"}}}`

// readGateway reads the key gateway. Whatever is wrong in it makes the whole invalid, unknown keys included: a restriction that was
// misspelt would let agents in that it was to keep out.
func (r *reader) readGateway(v value, p *Parsed) {
	// A project's file may be a stranger's, who would let his agents in.
	if merelyFound(p.Scope) {
		r.addWarning(r.posOf(v.Value), v.key, "a project file cannot say who uses the servers; the key is dropped",
			"set it in your own file, or name this one with --config")
		return
	}
	g := &Gateway{Source: p.Path, Managed: p.Scope == messages.ScopeManaged}
	own := &gatewayReader{reader: reader{file: r.file, src: r.src, positions: map[string]Pos{}}, gateway: g, scope: p.Scope}
	own.readKeys(v, gatewayExample, gatewayKeys, own.readKey)
	own.checkReferences()
	g.Invalid = invalidText(own.problems)
	r.problems = append(r.problems, own.problems...)
	p.Gateway = g
}

// gatewayReader reads one value of gateway.
type gatewayReader struct {
	reader
	gateway *Gateway
	scope   messages.Scope
}

// readKeys reads an object with known keys. Another key is a problem with the nearest known one.
func (r *gatewayReader) readKeys(v value, example string, known []string, each func(key string, m value)) {
	r.readObject(v, example, func(key string, at Pos, m value) {
		switch {
		case slices.Contains(known, key):
			each(key, m)
		case isRemark(key):
		default:
			fix := "known are " + strings.Join(known, ", ")
			if near := nearestKey(key, known); near != "" {
				fix = "did you mean " + near + "?"
			}
			r.addProblem(at, m.key, "unknown key", fix)
		}
	})
}

func (r *gatewayReader) readKey(key string, m value) {
	g := r.gateway
	switch key {
	case "listen":
		r.readText(m, &g.Listen)
	case "prefix":
		g.Prefix = r.readPrefix(m)
	case "tls":
		r.readKeys(m, `write {"certFile": "/PATH/cert.pem", "keyFile": "/PATH/key.pem"}`, []string{"certFile", "keyFile"}, func(key string, m value) {
			if key == "certFile" {
				r.readPath(m, &g.CertFile)
			} else {
				r.readPath(m, &g.KeyFile)
			}
		})
		if (g.CertFile == "") != (g.KeyFile == "") {
			r.addProblem(r.posOf(m.Value), m.key, "a certificate and its private key need each other", `write both "certFile" and "keyFile"`)
		}
	case "views":
		g.Views = map[string]View{}
		r.readNamed(m, func(name string, m value) { g.Views[name] = r.readView(m) })
	case "principals":
		g.Principals = map[string]Principal{}
		r.readNamed(m, func(name string, m value) { g.Principals[name] = r.readPrincipal(m) })
	case "tokens":
		g.Tokens = map[string]Token{}
		r.readNamed(m, func(name string, m value) { g.Tokens[name] = r.readToken(name, m) })
	}
}

// readNamed reads an object whose keys are names: of views, which stand in URLs, of principals and tokens, which stand in records.
func (r *gatewayReader) readNamed(v value, each func(name string, m value)) {
	n := 0
	r.readObject(v, `write {"NAME": {…}}`, func(name string, at Pos, m value) {
		switch n++; {
		case n == MaxServers+1:
			r.addProblem(at, v.key, fmt.Sprintf("there are more than %d, and the rest is not read", MaxServers), "")
		case n > MaxServers:
		case name == "" || len(name) > 64 || strings.Trim(name, nameLetters) != "" || strings.Trim(name, ".") == "":
			r.addProblem(at, v.key, "the name "+quoteShort(messages.Line(name, 80))+" is not made of letters, digits, - _ . and @, 64 at most", "give it another one")
		default:
			each(name, m)
		}
	})
}

const nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.@"

func (r *gatewayReader) readPrefix(m value) (prefix string) {
	if r.readText(m, &prefix) && !slices.Contains(Prefixes, prefix) {
		r.addProblem(r.posOf(m.Value), m.key, "unknown value "+quoteShort(messages.Line(prefix, 40)), "write "+strings.Join(Prefixes, ", "))
	}
	return prefix
}

// readPath reads the path of a file. A relative one would mean another file in each directory.
func (r *gatewayReader) readPath(m value, into *string) {
	if r.readText(m, into) && !filepath.IsAbs(*into) && !strings.HasPrefix(*into, "~/") {
		r.addProblem(r.posOf(m.Value), m.key, "the path is not absolute", "write it from the root on, or from ~/ on")
	}
}

func (r *gatewayReader) readView(v value) (view View) {
	source := func(at Pos) access.Source {
		return access.Source{File: r.file, Line: at.Line, Col: at.Col, Scope: r.scope}
	}
	closed := func(text string, at Pos) {
		view.Rules.Rules = append(view.Rules.Rules, access.Unreadable(text, source(at)))
	}
	r.readKeys(v, `write {"servers": ["github"], "deny": ["mcp__github__delete_*"]}`, append(slices.Clone(viewKeys), "ask"), func(key string, m value) {
		switch key {
		case "servers":
			view.serversAt = r.posOf(m.Value)
			r.readToolNames(m, &view.Servers)
			if view.Servers == nil {
				view.Servers = []string{} // a list that could not be read shows nothing
			}
		case "prefix":
			view.Prefix = r.readPrefix(m)
		case "default":
			r.readDefault(m, false, source, &view.Rules, closed)
			if view.Rules.Default == access.Ask {
				r.refuseAsk(m)
			}
		case "ask":
			r.refuseAsk(m)
		default:
			r.readRules(access.Verdict(key), m, source, &view.Rules, closed)
		}
	})
	return view
}

func (r *gatewayReader) refuseAsk(m value) {
	r.addProblem(r.posOf(m.Value), m.key, "a view allows or denies, and asks nobody", `write the rule into "permissions"`)
}

func (r *gatewayReader) readPrincipal(v value) (p Principal) {
	r.readKeys(v, `write {"view": "docs", "maxSessions": 10}`, principalKeys, func(key string, m value) {
		switch key {
		case "view":
			r.readText(m, &p.View)
		case "maxSessions":
			r.readWhole(m, "a number of sessions", func(n int64) { p.MaxSessions = int(min(n, 1<<20)) })
		case "maxRequests":
			r.readWhole(m, "a number of requests", func(n int64) { p.MaxRequests = int(min(n, 1<<20)) })
		}
	})
	return p
}

// secretKeys are keys under which a person would write the token itself.
var secretKeys = []string{"token", "value", "secret", "bearer", "apiKey"}

const tokenExample = `write {"principal": "ann", "file": "~/ann.token"}`

func (r *gatewayReader) readToken(name string, v value) (t Token) {
	r.readKeys(v, tokenExample, append(slices.Clone(tokenKeys), secretKeys...), func(key string, m value) {
		switch key {
		case "principal":
			r.readText(m, &t.Principal)
		case "view":
			r.readText(m, &t.View)
		case "file":
			r.readPath(m, &t.File)
		case "fromEnv":
			r.readText(m, &t.FromEnv)
		case "command":
			t.Command = r.readCommandLine(m)
		default:
			r.addProblem(r.posOf(m.Value), m.key, "a token does not stand in a configuration file",
				`name where it is: "file", "fromEnv" or "command"`)
		}
	})
	n := 0
	for _, given := range []bool{t.File != "", t.FromEnv != "", len(t.Command) > 0} {
		if given {
			n++
		}
	}
	if n != 1 && invalidText(r.problems) == "" {
		r.addProblem(r.posOf(v.Value), v.key, "it needs one of file, fromEnv and command", tokenExample)
	}
	if t.Principal == "" {
		t.Principal = name
	}
	return t
}

// readCommandLine reads a text, which Words splits, or a list of words.
func (r *gatewayReader) readCommandLine(m value) (words []string) {
	if l, ok := literalOf(m.Value); ok && l.Kind() == '"' {
		words, err := Words(l.String())
		if err != nil {
			r.addProblem(r.posOf(m.Value), m.key, err.Error(), "close it, or escape it with a backslash")
		}
		return words
	}
	words, _ = r.readList(m, `write ["program", "argument…"]`, r.readText)
	return words
}

// checkReferences checks what can be checked only when everything is read: names that lead nowhere, and the address.
func (r *gatewayReader) checkReferences() {
	g := r.gateway
	views, principals := slices.Sorted(maps.Keys(g.Views)), slices.Sorted(maps.Keys(g.Principals))
	check := func(key, kind, name string, known []string) {
		if name == "" || slices.Contains(known, name) {
			return
		}
		fix := "write one of " + kind + "s, or add it there"
		if near := nearestKey(name, known); near != "" {
			fix = "did you mean " + near + "?"
		}
		r.addProblem(r.positions[key], key, "there is no "+kind+" "+quoteShort(messages.Line(name, 80)), fix)
	}
	for _, name := range principals {
		check(gatewayKey+".principals."+name+".view", "view", g.Principals[name].View, views)
	}
	for _, name := range slices.Sorted(maps.Keys(g.Tokens)) {
		t, key := g.Tokens[name], gatewayKey+".tokens."+name
		check(key+".view", "view", t.View, views)
		// A file without principals names them where it uses them.
		if g.Principals != nil {
			if _, written := r.positions[key+".principal"]; written {
				check(key+".principal", "principal", t.Principal, principals)
			}
		}
	}
	if g.Listen != "" {
		if text, fix := CheckListen(g.Listen, g.CertFile != "", len(g.Tokens) > 0); text != "" {
			r.addProblem(r.positions[gatewayKey+".listen"], gatewayKey+".listen", text, fix)
		}
	}
}

// gatewayOf returns what the managed file says, or else the file with the highest precedence, unless a managed file is exclusive; nil
// if no file says anything. files come lowest precedence first. The result is a copy with its paths made whole.
func gatewayOf(files []Parsed, exclusive bool, home string) *Gateway {
	var g *Gateway
	for _, f := range files {
		if f.Gateway != nil && (f.Gateway.Managed || !exclusive && (g == nil || !g.Managed)) {
			g = f.Gateway
		}
	}
	if g == nil {
		return nil
	}
	own := *g
	own.Tokens = maps.Clone(g.Tokens)
	whole := func(path string) string {
		if under, ok := strings.CutPrefix(path, "~/"); ok && home != "" {
			return filepath.Join(home, under)
		}
		return path
	}
	own.CertFile, own.KeyFile = whole(own.CertFile), whole(own.KeyFile)
	for name, t := range own.Tokens {
		t.File = whole(t.File)
		own.Tokens[name] = t
	}
	// A token without a view has that of its principal.
	for name, t := range own.Tokens {
		if t.View == "" {
			t.View = own.Principals[t.Principal].View
			own.Tokens[name] = t
		}
	}
	return &own
}
