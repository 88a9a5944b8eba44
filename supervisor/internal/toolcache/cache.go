// Package toolcache keeps the tools of lazy servers from one run to the next, so that they can be offered before the server is dialled.
//
//	c := toolcache.New(dir, false, nil, log, set.IdentityOf)      // nil without a folder: it keeps nothing
//	c.SaveToolList("files", &spec, list)
//	list = c.LoadToolList("files", &spec)
//
// Guarantees: a private list is found again only under the same spec, the same environment and the same account. Where the account
// cannot be known nothing is kept, unless the server says that its list is public.
//
// # How it fits
//
// Package core loads a list before a lazy server's actor begins, the actor saves each new one. Package supervisor/internal/lists
// has the files, package credentials knows the account.
//
// Not promised: that the tools are still those of the server. They are offered as cached, and the first call connects the server and
// lists them anew.
package toolcache

import (
	"encoding/json"
	"strings"

	"go.uber.org/zap"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/lists"
	"github.com/mcpvisor/mcpvisor/transports/kinds"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// The tools of a lazy server outlive the manager in small files, one per server and audience, so that the next run can offer them
// before the server is dialled. A file that is missing, damaged or of another audience counts as none. MCP 2026-07-28, Caching:
// what is private must not be shared across authorization contexts. A server of the legacy era says nothing about that, and its
// lists count as private, because they may differ per user and nothing shows whether they do.

// cachedForm is the form of cachedTools. It rises with every change of a member, and is a part of what a file is found by: a program
// never reads the lists of one that writes another form, and leaves them in their place.
const cachedForm = 3

// cachedTools is the content of such a file. Quarantined tools are kept too, so that the status can name them before a connection.
type cachedTools struct {
	Tools []messages.Tool `json:"tools"`
	// Raw are the definitions of Tools byte for byte as the server wrote them, which a gateway passes on.
	Raw         []string                   `json:"raw"`
	Quarantined []messages.QuarantinedTool `json:"quarantined,omitempty"`
	// Instructions are empty if they are longer than maxInstructions.
	Instructions string `json:"instructions,omitempty"`
}

// maxInstructions is that of a gateway, which has room for no more.
const maxInstructions = 16 << 10

// listAudience says who could read a list: the spec as it is resolved, with every value of its headers, environment and auth,
// and the account behind them. Its JSON is hashed under a key and never written.
type listAudience struct {
	Form int
	Spec *messages.Spec
	// Public lists belong to every account, so Identity and Env are empty for them.
	Public   bool     `json:",omitempty"`
	Identity string   `json:",omitempty"`
	Env      []string `json:",omitempty"`
}

// Cache keeps the lists of tools between runs. A nil one keeps nothing. Safe for concurrent use.
type Cache struct {
	files *lists.Files
	// identity returns what is known of the account behind a server's credentials.
	identity   func(name string, spec *messages.Spec) (identity string, known bool)
	inheritEnv bool
	searchPath func() (path string, known bool)
	form       int // cachedForm
}

// New returns nil without a folder. inheritEnv and searchPath are those of supervisor.Config; searchPath, nil for none, and identity must
// return soon, because actors wait for them in their turns.
func New(
	dir string, inheritEnv bool, searchPath func() (string, bool), log *zap.Logger, identity func(string, *messages.Spec) (string, bool),
) *Cache {
	if dir == "" {
		return nil
	}
	return &Cache{files: lists.Open(dir, func(text string) { log.Warn(text) }), identity: identity, inheritEnv: inheritEnv, searchPath: searchPath,
		form: cachedForm}
}

// IsKnown reports whether a list of the server is kept, for whatever audience.
func (c *Cache) IsKnown(name string) bool { return c != nil && c.files.Known(name) }

// ForgetServer removes the lists of a server, because its account has changed.
func (c *Cache) ForgetServer(name string) {
	if c != nil {
		c.files.Forget(name)
	}
}

// audienceOf returns the audience of a server's lists; nil if it cannot be known. With public set it is that of lists which
// the server shows to every account that its spec leads to.
func (c *Cache) audienceOf(name string, spec *messages.Spec, public bool) []byte {
	r := listAudience{Form: c.form, Spec: spec, Public: public}
	if !public {
		var known bool
		if r.Identity, known = c.identity(name, spec); !known {
			return nil
		}
		// A child sees the manager's environment too: another value may mean another account.
		if spec.Kind() == messages.Stdio {
			if r.Env, known = c.childEnv(spec); !known {
				return nil
			}
		}
	}
	context, err := json.Marshal(r)
	if err != nil {
		return nil
	}
	return context
}

// childEnv returns the environment that the server's process would have now.
func (c *Cache) childEnv(spec *messages.Spec) (env []string, known bool) {
	if c.searchPath == nil {
		return kinds.ChildEnv(spec, c.inheritEnv, nil), true
	}
	path, known := c.searchPath()
	if !known {
		return nil, false
	}
	return kinds.ChildEnv(spec, c.inheritEnv, func() string { return path }), true
}

// LoadToolList returns the list that was kept for the present audience, nil if there is none. The private one is looked for
// first, because it is the more exact. It reads files, in the supervisor's turn: they are small, and only lazy servers have one.
func (c *Cache) LoadToolList(name string, spec *messages.Spec) *session.ToolList {
	if c == nil {
		return nil
	}
	// At most two files are read: the one of this account, then the public one.
	for _, public := range []bool{false, true} {
		context := c.audienceOf(name, spec, public)
		if context == nil {
			continue
		}
		var cached cachedTools
		data := c.files.Load(name, context)
		if data == nil || json.Unmarshal(data, &cached) != nil || len(cached.Raw) != len(cached.Tools) {
			continue
		}
		// The id of a server is not in its file: the same tools may be configured under another name.
		for i := range cached.Tools {
			cached.Tools[i].Server, cached.Tools[i].Raw = name, ownDefinition(cached.Raw[i], cached.Tools[i].Name)
		}
		return &session.ToolList{Tools: cached.Tools, Quarantined: cached.Quarantined, Instructions: cached.Instructions, Public: public}
	}
	return nil
}

// ownDefinition returns the definition of a tool as it may stand in a message, on one line; nil if it is not the one of this tool: the
// file lies where other programs of this user can write.
func ownDefinition(text, name string) json.RawMessage {
	raw := json.RawMessage(text)
	if strings.ContainsAny(text, "\r\n") || !rawjson.IsObject(raw) || !rawjson.Valid(raw) {
		return nil
	}
	if said, ok := rawjson.Text(rawjson.Member(raw, "name")); !ok || said != name {
		return nil
	}
	return raw
}

// SaveToolList writes the list in the background, because the server's actor calls it in its turn; a list that is not kept only
// makes the next start slower. Whose list it is must be settled before the goroutine begins: the next connection may be
// another account's.
func (c *Cache) SaveToolList(name string, spec *messages.Spec, list *session.ToolList) {
	raw := make([]string, len(list.Tools))
	for i := range list.Tools {
		raw[i] = string(list.Tools[i].Raw)
	}
	kept := cachedTools{Tools: list.Tools, Raw: raw, Quarantined: list.Quarantined}
	if len(list.Instructions) <= maxInstructions {
		kept.Instructions = list.Instructions
	}
	data, err := json.Marshal(kept)
	if err != nil {
		return
	}
	// Both audiences are computed in the actor's turn, in which the credential cannot change.
	context, other := c.audienceOf(name, spec, list.Public), c.audienceOf(name, spec, !list.Public)
	go func() { // ends with the writing of one file
		defer func() { _ = recover() }()
		if other != nil {
			// It is older, and LoadToolList may find it first.
			c.files.Remove(name, other)
		}
		if context != nil {
			c.files.Save(name, context, data)
		}
	}()
}
