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

// The bounds of a store. They keep a server that offers new tools without end from filling the disk.
const (
	maxServers    = 1024
	maxTools      = 16 << 10
	maxDefinition = 64 << 10
	// maxKept bounds the definitions that are kept of one server's tools, in bytes.
	maxKept     = 16 << 20
	maxApproved = 8
)

// pin has what is remembered of one tool.
type pin struct {
	// Approved are the hashes of approved definitions, the newest last; Old is the newest approved definition.
	Approved []string    `json:"approved"`
	Old      *Definition `json:"definition,omitempty"`
	// Now is the hash of a definition that waits for an approval, New that definition, Shown the hash that a person has seen.
	Now   string      `json:"now,omitempty"`
	New   *Definition `json:"new,omitempty"`
	Shown string      `json:"shown,omitempty"`
	// Seen is the digest of the bytes in which the tool was offered last, Means the hash of the definition in them: with equal
	// bytes the definition need not be parsed again.
	Seen  string `json:"seen,omitempty"`
	Means string `json:"means,omitempty"`
	// Gone is set while the server does not offer the tool, Noted when a person has seen that. Later is set for a tool that came after
	// the first list, until a person has seen that.
	Gone  bool `json:"gone,omitempty"`
	Noted bool `json:"noted,omitempty"`
	Later bool `json:"later,omitempty"`
}

// pendingChange returns the change of a tool that waits for an approval.
func (p *pin) pendingChange(tool string) Change {
	return Change{Tool: tool, Old: p.Old, New: p.New, Hash: p.Now}
}

// serverPins are the pins of one server, by the tools' own names.
type serverPins map[string]*pin

// pinsByServer are the pins of all servers, by their keys.
type pinsByServer map[string]serverPins

// clone shares with k only definitions, which are never changed.
func (k serverPins) clone() serverPins {
	out := make(serverPins, len(k))
	for name, p := range k {
		// Definitions are never changed in place, so they may be shared.
		q := *p
		q.Approved = slices.Clone(p.Approved)
		out[name] = &q
	}
	return out
}

// equal reports whether two sets of pins lead to the same findings: only approvals matter.
func (k serverPins) equal(o serverPins) bool {
	return maps.EqualFunc(k, o, func(a, b *pin) bool {
		return slices.Equal(a.Approved, b.Approved)
	})
}

// offeredTool is one tool as its server offers it now.
type offeredTool struct {
	tool *messages.Tool
	raw  string // the digest of its bytes, empty if they are not known
}

// definitionHash returns the hash of the tool's definition. The definition is parsed only if its bytes differ from the last time.
func (s offeredTool) definitionHash(p *pin) (hash string, d *Definition) {
	// Equal bytes have the definition whose hash is known.
	if p != nil && s.raw != "" && p.Seen == s.raw {
		return p.Means, nil
	}
	made := DefinitionOf(s.tool)
	return made.Hash(), &made
}

// updatePins updates the pins of a server to what it offers. changed says that there is something to write. full says that the
// server has no pins because too many others have. The hashes of the definitions are written to hashes, if it is not nil.
func (b pinsByServer) updatePins(key string, all []offeredTool, hashes map[string]string) (changed, full bool) {
	k := b[key]
	// All tools of a server's first list are trusted, and none of them counts as new.
	first := k == nil
	if first {
		if len(b) >= maxServers {
			return false, true
		}
		k = serverPins{}
		b[key] = k
	}
	// The size is counted only when a definition is to be kept: most lists bring nothing new.
	// -1 says that the size is not known yet.
	size := -1
	// A definition beyond the bounds is remembered by its hash alone.
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
	// Tools that are not in there at the end are gone.
	there := make(map[string]bool, len(all))
	var over []string
	var overTools []*messages.Tool
	for _, s := range all {
		name := s.tool.Name
		there[name] = true
		p := k[name]
		hash, d := s.definitionHash(p)
		// The hashes are wanted by Compare and not when a change is repeated on the file.
		if hashes != nil {
			hashes[name] = hash
		}
		// Bytes that were seen by this version have no hash of version 1 any more.
		if p != nil && d != nil && p.replaceVersionOne(hash, func() string { return versionOneHash(s.tool) }) {
			changed = true
		}
		switch {
		case p == nil && len(k) >= maxTools && name != beyondLimit:
			over, overTools = append(over, name+"\x00"+hash), append(overTools, s.tool)
			continue
		// A tool that is seen for the first time is approved: trust on first use.
		case p == nil:
			k[name] = &pin{Approved: []string{hash}, Old: keep(d), Seen: s.raw, Means: hash, Later: !first}
			changed = true
			continue
		// The server offers an approved definition again, so nothing waits any more.
		case slices.Contains(p.Approved, hash):
			if p.Now != "" {
				p.Now, p.New, p.Shown, changed = "", nil, "", true
			}
		case p.Now != hash:
			// The bytes were known, but the definition is needed to be shown.
			if d == nil {
				made := DefinitionOf(s.tool)
				d = &made
			}
			p.Now, p.New, changed = hash, keep(d), true
		}
		// The tool is offered again; Noted belongs to its absence.
		if p.Gone {
			p.Gone, p.Noted, changed = false, false, true
		}
		// The bytes may differ where the definition does not, for example in white space.
		if s.raw != "" && p.Seen != s.raw {
			p.Seen, p.Means, changed = s.raw, hash, true
		}
	}
	// All tools beyond the bound share one pin: that one of them changed can be reported.
	if len(over) > 0 {
		// One digest stands for all tools without a pin.
		hash := hashPrefix + toolsDigest(over)
		there[beyondLimit] = true
		if hashes != nil {
			hashes[beyondLimit] = hash
		}
		p := k[beyondLimit]
		if p != nil && p.replaceVersionOne(hash, func() string { return versionOneDigest(overTools) }) {
			changed = true
		}
		switch {
		case p == nil:
			k[beyondLimit], changed = &pin{Approved: []string{hash}}, true
		// The tools beyond the bound are again those that were approved.
		case slices.Contains(p.Approved, hash):
			if p.Now != "" || p.Gone {
				p.Now, p.Shown, p.Gone, changed = "", "", false, true
			}
		// Another tool beyond the bound came, went or changed.
		case p.Now != hash || p.Gone:
			p.Now, p.Gone, changed = hash, false, true
		}
	}
	// Tools that are missing keep their pins: a server that brings one back changed must be noticed.
	for name, p := range k {
		if !there[name] && !p.Gone {
			p.Gone, changed = true, true
		}
	}
	return changed, false
}

// beyondLimit names the one pin of all tools beyond maxTools. That any of them changed can be reported, though not which. No
// tool has such a name.
const beyondLimit = "(one of the tools beyond the 16,384th)"

// toolsDigest returns the identity of a set of tools, in any order.
func toolsDigest(tools []string) string {
	slices.Sort(tools)
	sum := sha256.New()
	for _, t := range tools {
		_, _ = io.WriteString(sum, t+"\n")
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// size returns roughly how many bytes the kept definitions take.
func (k serverPins) size() (n int) {
	for _, p := range k {
		n += p.Old.size() + p.New.size()
	}
	return n
}

// size returns roughly how many bytes a definition takes; 0 for nil.
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

// approveTool adds a definition, by its hash, to the approved ones; beyond maxApproved the oldest is forgotten.
func (b pinsByServer) approveTool(key, tool, hash string, d *Definition) {
	p := b[key][tool]
	if p == nil || slices.Contains(p.Approved, hash) {
		return
	}
	// The oldest approvals are forgotten first.
	p.Approved = append(p.Approved, hash)
	p.Approved = p.Approved[max(len(p.Approved)-maxApproved, 0):]
	p.Old = d
	// Nothing waits any more.
	if p.Now == hash {
		p.Now, p.New, p.Shown = "", nil, ""
	}
}
