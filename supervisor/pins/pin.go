package pins

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"maps"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

const (
	maxServers    = 1024
	maxTools      = 16 << 10
	maxDefinition = 64 << 10
	// maxKept bounds what is kept of the definitions of one server's tools, in bytes.
	maxKept     = 16 << 20
	maxApproved = 8
)

// pin is what is remembered of one tool.
type pin struct {
	// Approved are the hashes that were approved, the newest last; Old is the definition of that one.
	Approved []string    `json:"approved"`
	Old      *Definition `json:"definition,omitempty"`
	// Now is the hash of a definition that waits for an approval, New that definition, Shown the hash that a person saw.
	Now   string      `json:"now,omitempty"`
	New   *Definition `json:"new,omitempty"`
	Shown string      `json:"shown,omitempty"`
	// Seen is the digest of the bytes in which the tool was offered last, Means the hash of the definition in them: equal
	// bytes need not be read.
	Seen  string `json:"seen,omitempty"`
	Means string `json:"means,omitempty"`
	// Gone is set while the server does not offer the tool, Noted when a person knows of that, Later if it was not among those
	// that were seen first, and no person knows of it.
	Gone  bool `json:"gone,omitempty"`
	Noted bool `json:"noted,omitempty"`
	Later bool `json:"later,omitempty"`
}

// pendingChange is the change of a tool that waits.
func (p *pin) pendingChange(tool string) Change {
	return Change{Tool: tool, Old: p.Old, New: p.New, Hash: p.Now}
}

// serverPins are the pins of one server's tools.
type serverPins map[string]*pin

// pinsByServer are the pins of all servers, by their keys.
type pinsByServer map[string]serverPins

// clone shares nothing with b that anybody changes.
func (k serverPins) clone() serverPins {
	out := make(serverPins, len(k))
	for name, p := range k {
		q := *p
		q.Approved = slices.Clone(p.Approved)
		out[name] = &q
	}
	return out
}

// equal reports whether two say the same of what is offered.
func (k serverPins) equal(o serverPins) bool {
	return maps.EqualFunc(k, o, func(a, b *pin) bool {
		return slices.Equal(a.Approved, b.Approved)
	})
}

// offeredTool is one tool as it was offered.
type offeredTool struct {
	tool *messages.Tool
	raw  string // the digest of its bytes, empty if they are not known
}

// definitionHash is that of its definition. It is read only if its bytes are others than the last time.
func (s offeredTool) definitionHash(p *pin) (hash string, d *Definition) {
	if p != nil && s.raw != "" && p.Seen == s.raw {
		return p.Means, nil
	}
	made := DefinitionOf(s.tool)
	return made.Hash(), &made
}

// updatePins brings the pins of a server up to what it offers. It reports whether anything is to be remembered by it. full says that
// no server more is remembered. The hashes of the definitions are written to hashes, if it is not nil.
func (b pinsByServer) updatePins(key string, all []offeredTool, hashes map[string]string) (changed, full bool) {
	k := b[key]
	first := k == nil
	if first {
		if len(b) >= maxServers {
			return false, true
		}
		k = serverPins{}
		b[key] = k
	}
	size := -1
	keep := func(d *Definition) *Definition {
		if d == nil {
			return nil
		}
		if size < 0 {
			size = k.size()
		}
		n := d.size()
		if n > maxDefinition || size+n > maxKept {
			return nil
		}
		size += n
		return d
	}
	there := make(map[string]bool, len(all))
	var over []string
	for _, s := range all {
		name := s.tool.Name
		there[name] = true
		p := k[name]
		hash, d := s.definitionHash(p)
		if hashes != nil {
			hashes[name] = hash
		}
		switch {
		case p == nil && len(k) >= maxTools && name != beyondLimit:
			over = append(over, name+"\x00"+hash)
			continue
		case p == nil:
			k[name] = &pin{Approved: []string{hash}, Old: keep(d), Seen: s.raw, Means: hash, Later: !first}
			changed = true
			continue
		case slices.Contains(p.Approved, hash):
			if p.Now != "" {
				p.Now, p.New, p.Shown, changed = "", nil, "", true
			}
		case p.Now != hash:
			if d == nil {
				made := DefinitionOf(s.tool)
				d = &made
			}
			p.Now, p.New, changed = hash, keep(d), true
		}
		if p.Gone {
			p.Gone, p.Noted, changed = false, false, true
		}
		if s.raw != "" && p.Seen != s.raw {
			p.Seen, p.Means, changed = s.raw, hash, true
		}
	}
	if len(over) > 0 {
		hash := toolsDigest(over)
		there[beyondLimit] = true
		if hashes != nil {
			hashes[beyondLimit] = hash
		}
		p := k[beyondLimit]
		switch {
		case p == nil:
			k[beyondLimit], changed = &pin{Approved: []string{hash}}, true
		case slices.Contains(p.Approved, hash):
			if p.Now != "" || p.Gone {
				p.Now, p.Shown, p.Gone, changed = "", "", false, true
			}
		case p.Now != hash || p.Gone:
			p.Now, p.Gone, changed = hash, false, true
		}
	}
	for name, p := range k {
		if !there[name] && !p.Gone {
			p.Gone, changed = true, true
		}
	}
	return changed, false
}

// beyondLimit is the one pin of all tools of a server that have no pin of their own, because it has more than maxTools: a change of
// any of them can be said, though not of which. No tool has such a name.
const beyondLimit = "(one of the tools beyond the 16,384th)"

// toolsDigest tells sets of tools apart.
func toolsDigest(tools []string) string {
	slices.Sort(tools)
	sum := sha256.New()
	for _, t := range tools {
		_, _ = io.WriteString(sum, t+"\n") // it never fails
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// size is roughly what the definitions take.
func (k serverPins) size() (n int) {
	for _, p := range k {
		n += p.Old.size() + p.New.size()
	}
	return n
}

func (d *Definition) size() int {
	if d == nil {
		return 0
	}
	n := len(d.Title) + len(d.Description) + len(d.InputSchema) + len(d.OutputSchema) + len(d.Rest)
	if d.Annotations != nil {
		b, _ := json.Marshal(d.Annotations) // it always encodes
		n += len(b)
	}
	return n
}

// approveTool accepts a definition of a tool, by its hash.
func (b pinsByServer) approveTool(key, tool, hash string, d *Definition) {
	p := b[key][tool]
	if p == nil || slices.Contains(p.Approved, hash) {
		return
	}
	p.Approved = append(p.Approved, hash)
	p.Approved = p.Approved[max(len(p.Approved)-maxApproved, 0):]
	p.Old = d
	if p.Now == hash {
		p.Now, p.New, p.Shown = "", nil, ""
	}
}
