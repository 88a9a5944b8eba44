package messages

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
)

// NameStyle is the form of a qualified tool name.
type NameStyle string

const (
	// StyleDouble (the default) is mcp__{server}__{tool}.
	StyleDouble NameStyle = "mcp__{server}__{tool}"
	// StyleSingle is mcp_{server}_{tool}, for programs that cannot take two underscores. More names carry a hash.
	StyleSingle NameStyle = "mcp_{server}_{tool}"
)

// Bounds of Naming.Limit, in bytes. Model APIs accept 64 or 128; below 32 a name would be little more than its hash.
const (
	DefaultNameLimit = 64
	MinNameLimit     = 32
	MaxNameLimit     = 128
)

// Naming turns a server's id and its tool's own name into the one name under which the tool is offered. It is a value
// without state: the same pair gives the same name in every process, whatever else is configured.
//
// Every name matches ^[A-Za-z0-9_-]{1,limit}$. A name is plain (style with both parts put in, nothing else) if both
// parts are free of other characters, the result fits, and no other pair could be read from it. Every other name has
// what does not fit replaced or cut, and ends in an underscore and ten characters of a hash of the true pair:
//
//	github, create_issue      mcp__github__create_issue
//	my server, run            mcp__my_server__run_w834xcl2v5      a character was replaced
//	a__b, c                   mcp__a__b__c_6kh92l2ms6             a__b__c could also be server a, tool b__c
//	a_, b                     mcp__a___b_7gv1kts0rp               a___b could also be server a, tool _b
//
// So two pairs never share a name, up to the hash: for two hashed pairs whose visible parts are the same the chance is
// one in 30¹⁰ (about 6·10¹⁴). The catalog refuses the second one then, and says so.
type Naming struct {
	// Style is StyleDouble if empty or unknown.
	Style NameStyle
	// Limit is the longest name in bytes; 0 means DefaultNameLimit. A value outside MinNameLimit and MaxNameLimit counts
	// as the nearer one.
	Limit int
}

// Validate reports a style or a limit that Tool would replace by another.
func (n Naming) Validate() error {
	switch n.Style {
	case "", StyleDouble, StyleSingle:
	default:
		return fmt.Errorf("naming style %s is neither %q nor %q", quoteName(string(n.Style)), StyleDouble, StyleSingle)
	}
	if n.Limit != 0 && (n.Limit < MinNameLimit || n.Limit > MaxNameLimit) {
		return fmt.Errorf("name limit %d is outside %d to %d", n.Limit, MinNameLimit, MaxNameLimit)
	}
	return nil
}

// Tool returns the qualified name of a tool. It is a pure function of its arguments.
func (n Naming) Tool(server, tool string) string {
	limit, sep := n.effectiveLimit(), n.separator()
	if isCleanName(server) && isCleanName(tool) && !isAmbiguous(server, sep) {
		name := "mcp" + sep + server + sep + tool
		if len(name) <= limit && !endsHashed(name) {
			return name
		}
	}

	s, t := sanitizeName(server), sanitizeName(tool)
	// Both parts get half of the room, and what the other one leaves.
	room := limit - len("mcp") - 2*len(sep) - hashSuffix
	s = s[:min(len(s), max(room/2, room-len(t)))]
	t = t[:min(len(t), room-len(s))]
	return "mcp" + sep + s + sep + t + "_" + pairHash(server, tool)
}

// Prompt returns the qualified name of a prompt, by the rules of Tool.
func (n Naming) Prompt(server, prompt string) string { return n.Tool(server, prompt) }

// Split takes a plain name apart. It is the inverse of Tool for plain names; ok is false for every other text, also
// for a name with a hash, whose pair only the catalog knows.
func (n Naming) Split(name string) (server, tool string, ok bool) {
	sep := n.separator()
	rest, ok := strings.CutPrefix(name, "mcp"+sep)
	if !ok {
		return "", "", false
	}
	server, tool, ok = strings.Cut(rest, sep)
	if !ok || n.Tool(server, tool) != name || endsHashed(name) {
		return "", "", false
	}
	return server, tool, true
}

// MayBeOf reports whether a name can be that of a tool or a prompt of the server. Of a plain name one server can be the owner,
// of a name with a hash each whose visible part is the same.
func (n Naming) MayBeOf(name, server string) bool {
	if owner, _, plain := n.Split(name); plain {
		return owner == server
	}
	if !endsHashed(name) {
		return false
	}
	sep, s := n.separator(), sanitizeName(server)
	if strings.HasPrefix(name, "mcp"+sep+s+sep) {
		return true
	}
	if len(name) != n.effectiveLimit() {
		return false
	}
	// Tool has cut the server, to half of the room at least, because the name was full.
	least := (n.effectiveLimit() - len("mcp") - 2*len(sep) - hashSuffix) / 2
	for kept := len(s) - 1; kept >= least; kept-- {
		if strings.HasPrefix(name, "mcp"+sep+s[:kept]+sep) {
			return true
		}
	}
	return false
}

// effectiveLimit returns the limit that is in force, in bytes; Validate reports one that it has to correct.
func (n Naming) effectiveLimit() int {
	if n.Limit == 0 {
		return DefaultNameLimit
	}
	return min(max(n.Limit, MinNameLimit), MaxNameLimit)
}

func (n Naming) separator() string {
	if n.Style == StyleSingle {
		return "_"
	}
	return "__"
}

// DisplayName returns the name of a tool for people: server:tool, on one line and without any character that could act
// on a terminal. ParseDisplayName reads it back as long as nothing had to be replaced.
func DisplayName(server, tool string) string { return Line(server+":"+tool, 0) }

// ParseDisplayName takes server:tool apart. known tells which server ids exist; with it, an id that itself holds
// colons is found (the longest known id wins), and ok is false if no split names a known server. With a nil known the
// split is at the first colon. Neither part is ever empty when ok is true.
func ParseDisplayName(s string, known func(server string) bool) (server, tool string, ok bool) {
	for i := len(s) - 2; i > 0; i-- {
		if s[i] == ':' && (known == nil || known(s[:i])) {
			server, tool, ok = s[:i], s[i+1:], true
			if known != nil {
				break
			}
		}
	}
	return server, tool, ok
}

// isAmbiguous reports whether a name that starts with this server could be read as another server's. Let two names
// s1+sep+t1 and s2+sep+t2 be equal with s1 shorter: then s2 starts with s1 and goes on with sep, or, if it is only one
// byte longer, with the first byte of sep. The first needs a sep inside s2, the second an underscore at its end.
func isAmbiguous(server, sep string) bool {
	return strings.Contains(server, sep) || strings.HasSuffix(server, "_")
}

// isCleanName reports whether a name can stand in a qualified name as it is. The empty one cannot: nothing would be left
// of it beside the separator.
func isCleanName(s string) bool {
	for i := range len(s) {
		if !nameByte(s[i]) {
			return false
		}
	}
	return s != ""
}

// sanitizeName replaces every character (not byte) that a name cannot hold by an underscore.
func sanitizeName(s string) string {
	return strings.Map(func(r rune) rune {
		if r < 0x80 && nameByte(byte(r)) {
			return r
		}
		return '_'
	}, s)
}

func nameByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

// The hash is written without vowels, so that hardly a real tool name looks like one. Those that do get a hash of
// their own, because a plain name that looks hashed could be the hashed name of another pair.
const (
	hashLen      = 10
	hashSuffix   = 1 + hashLen // with its underscore
	hashAlphabet = "0123456789bcdfghjklmnpqrstvwxz"
)

// endsHashed reports whether a name ends like a hashed one: an underscore and hashLen characters of hashAlphabet. It does
// not tell whether the hash is right.
func endsHashed(name string) bool {
	if len(name) < hashSuffix || name[len(name)-hashSuffix] != '_' {
		return false
	}
	for i := len(name) - hashLen; i < len(name); i++ {
		if strings.IndexByte(hashAlphabet, name[i]) < 0 {
			return false
		}
	}
	return true
}

// pairHash returns the hash of a pair. The length of the server's id stands in front, which keeps (ab, c) and (a, bc)
// apart.
func pairHash(server, tool string) string {
	b := make([]byte, 0, 8+len(server)+len(tool))
	b = binary.BigEndian.AppendUint64(b, uint64(len(server)))
	b = append(append(b, server...), tool...)
	sum := sha256.Sum256(b)
	v := binary.BigEndian.Uint64(sum[:])
	var out [hashLen]byte
	for i := range out {
		out[i] = hashAlphabet[v%uint64(len(hashAlphabet))]
		v /= uint64(len(hashAlphabet))
	}
	return string(out[:])
}
