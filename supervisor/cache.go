package supervisor

import (
	"encoding/json"
	"os"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// The tools of a lazy server outlive the manager in small files, one per server and authorization context, so that the
// next run can offer them before the server is dialled. A file that is missing, damaged or of another context is as good
// as none. MCP 2026-07-28, Caching: what is private must not be shared across authorization contexts. A server of the
// legacy era says nothing about that, and its lists are taken for private: nothing tells those apart that differ per user.

type cachedTools struct {
	Tools       []messages.Tool            `json:"tools"`
	Quarantined []messages.QuarantinedTool `json:"quarantined,omitempty"`
}

// listAudience says who could read a list: the spec as it is resolved, with every value of its headers, environment and auth,
// and the identity behind them. It is hashed under a key, and never written.
type listAudience struct {
	Spec     *Spec
	Public   bool     `json:",omitempty"`
	Identity string   `json:",omitempty"`
	Env      []string `json:",omitempty"`
}

// audienceOf is the context of a server's lists; nil if that cannot be known. With public set it is that of lists which the
// server lets everybody see that its spec leads to.
func (c *Config) audienceOf(name string, spec *Spec, public bool) []byte {
	r := listAudience{Spec: spec, Public: public}
	if !public {
		var known bool
		if r.Identity, known = c.credentials.identityOf(name, spec); !known {
			return nil
		}
		if spec.Kind() == messages.Stdio {
			inherit := c.InheritEnv
			if spec.InheritEnv != nil {
				inherit = *spec.InheritEnv
			}
			r.Env, _ = transports.ChildEnv(os.Environ(), spec.Env, inherit)
		}
	}
	context, err := json.Marshal(r)
	if err != nil {
		return nil
	}
	return context
}

// loadToolList is the list that was kept for those who are let in now.
func (c *Config) loadToolList(name string, spec *Spec) *session.ToolList {
	if c.lists == nil {
		return nil
	}
	for _, public := range []bool{false, true} {
		context := c.audienceOf(name, spec, public)
		if context == nil {
			continue
		}
		var cached cachedTools
		data := c.lists.Load(name, context)
		if data == nil || json.Unmarshal(data, &cached) != nil {
			continue
		}
		for i := range cached.Tools {
			cached.Tools[i].Server = name
		}
		return &session.ToolList{Tools: cached.Tools, Quarantined: cached.Quarantined, Public: public}
	}
	return nil
}

// saveToolList writes in the background: it is called from an actor's turn, and a list that could not be kept is only a
// slower start of the next run. Whose list it is, is settled before: the next connection may be another account's.
func (c *Config) saveToolList(name string, spec *Spec, list *session.ToolList) {
	data, err := json.Marshal(cachedTools{Tools: list.Tools, Quarantined: list.Quarantined})
	if err != nil {
		return
	}
	context, other := c.audienceOf(name, spec, list.Public), c.audienceOf(name, spec, !list.Public)
	go func() { // ends with the writing of one file
		defer func() { _ = recover() }()
		if other != nil {
			c.lists.Remove(name, other) // it is older, and would be found first
		}
		if context != nil {
			c.lists.Save(name, context, data)
		}
	}()
}
