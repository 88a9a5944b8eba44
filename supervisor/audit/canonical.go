package audit

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"hash"
	"math"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// canonicalHasher computes the hash of a JSON text in its canonical form, without decoding it: one pass over the text notes where
// each value stands and puts the members of objects in order, another gives the form to the hash piece by piece. So the
// memory it takes depends on the number of values and not on their length, and it is used again.
type canonicalHasher struct {
	src     []byte
	nodes   []node
	order   []int32 // the members of the object that is put in order
	out     []byte  // of the form, what the hash has not got yet
	sum     hash.Hash
	lastSum []byte // the last hash
}

// node is a value of the text.
type node struct {
	// start and end are where it stands, name and colon where its name does, quotes included, if it is a member of an object.
	start, end, name, colon int32
	// first is the node of its first element or member, next that of the one after itself; 0 for none.
	first, next int32
	// escaped and nameEscaped say that a text is not in canonical form as it stands.
	escaped, nameEscaped bool
}

const (
	// maxDepth is how deep values may be nested, as in encoding/json.
	maxDepth = 10_000
	// piece is how many bytes of the form are gathered before the hash gets them.
	piece = 4 << 10
	// keptNodes bounds what is kept for the next text.
	keptNodes = 1 << 12
)

// hash is the SHA-256 of the canonical form of src, and of src as it is if that is no JSON.
func (c *canonicalHasher) hash(src []byte) (sum [sha256.Size]byte) {
	if !c.parseText(src) {
		sum = sha256.Sum256(src)
	} else {
		if c.sum == nil {
			c.sum = sha256.New()
		}
		c.sum.Reset()
		c.writeValue(0)
		c.flushOut()
		c.lastSum = c.sum.Sum(c.lastSum[:0])
		sum = [sha256.Size]byte(c.lastSum)
	}
	c.src = nil // it is the caller's
	if cap(c.nodes) > keptNodes {
		c.nodes, c.order = nil, nil
	}
	return sum
}

// parseText notes the values of src, the outermost first. It fails for what is no JSON.
func (c *canonicalHasher) parseText(src []byte) bool {
	c.src, c.nodes, c.out = src, c.nodes[:0], c.out[:0]
	if len(src) > math.MaxInt32 {
		return false
	}
	end, ok := c.noteValue(c.skipSpace(0), 0)
	return ok && c.skipSpace(end) == len(src)
}

func (c *canonicalHasher) skipSpace(at int) int {
	for at < len(c.src) && (c.src[at] == ' ' || c.src[at] == '\t' || c.src[at] == '\r' || c.src[at] == '\n') {
		at++
	}
	return at
}

func (c *canonicalHasher) hasByte(at int, b byte) bool { return at < len(c.src) && c.src[at] == b }

// noteValue notes the value that begins at a place, below so many others, and returns where it ends.
func (c *canonicalHasher) noteValue(at, depth int) (end int, ok bool) {
	if at >= len(c.src) {
		return at, false
	}
	self := len(c.nodes)
	c.nodes = append(c.nodes, node{start: int32(at)}) //nolint:gosec // parse bounds it
	escaped := false
	switch b := c.src[at]; b {
	case '{', '[':
		if depth == maxDepth {
			return at, false
		}
		end, ok = c.noteMembers(self, at+1, depth+1, b == '{')
	case '"':
		end, escaped, ok = textEnd(c.src, at)
	case 't':
		end, ok = c.matchWord(at, "true")
	case 'f':
		end, ok = c.matchWord(at, "false")
	case 'n':
		end, ok = c.matchWord(at, "null")
	default:
		end, ok = numberEnd(c.src, at)
	}
	c.nodes[self].end, c.nodes[self].escaped = int32(end), escaped //nolint:gosec // parse bounds it
	return end, ok
}

func (c *canonicalHasher) matchWord(at int, word string) (end int, ok bool) {
	end = at + len(word)
	return end, end <= len(c.src) && string(c.src[at:end]) == word
}

// noteMembers notes what stands between the brackets of an array or an object, whose node is self.
func (c *canonicalHasher) noteMembers(self, at, depth int, object bool) (end int, ok bool) {
	closing := byte(']')
	if object {
		closing = '}'
	}
	if at = c.skipSpace(at); c.hasByte(at, closing) {
		return at + 1, true
	}
	for last, sorted := 0, true; ; {
		var member node
		if object {
			if !c.hasByte(at, '"') {
				return at, false
			}
			member.name = int32(at) //nolint:gosec // parse bounds it
			if at, member.nameEscaped, ok = textEnd(c.src, at); !ok {
				return at, false
			}
			member.colon = int32(at) //nolint:gosec // parse bounds it
			if at = c.skipSpace(at); !c.hasByte(at, ':') {
				return at, false
			}
			at = c.skipSpace(at + 1)
		}
		n := len(c.nodes)
		if at, ok = c.noteValue(at, depth); !ok {
			return at, false
		}
		current := &c.nodes[n]
		current.name, current.colon, current.nameEscaped = member.name, member.colon, member.nameEscaped
		if last == 0 {
			c.nodes[self].first = int32(n) //nolint:gosec // no more than bytes
		} else {
			c.nodes[last].next = int32(n) //nolint:gosec // no more than bytes
			sorted = sorted && (!object || c.compareNames(&c.nodes[last], current) < 0)
		}
		last = n
		at = c.skipSpace(at)
		switch {
		case c.hasByte(at, ','):
			at = c.skipSpace(at + 1)
		case c.hasByte(at, closing):
			if !sorted {
				c.sortMembers(self)
			}
			return at + 1, true
		default:
			return at, false
		}
	}
}

// sortMembers puts the members of an object in the order of their names. Of several with one name the last one counts.
func (c *canonicalHasher) sortMembers(object int) {
	c.order = c.order[:0]
	for n := c.nodes[object].first; n != 0; n = c.nodes[n].next {
		c.order = append(c.order, n)
	}
	slices.SortFunc(c.order, func(a, b int32) int {
		if d := c.compareNames(&c.nodes[a], &c.nodes[b]); d != 0 {
			return d
		}
		return cmp.Compare(a, b)
	})
	next := int32(0)
	for i := len(c.order) - 1; i >= 0; i-- {
		n := c.order[i]
		if next != 0 && c.compareNames(&c.nodes[n], &c.nodes[next]) == 0 {
			continue
		}
		c.nodes[n].next, next = next, n
	}
	c.nodes[object].first = next
}

// compareNames compares the names of two members by their bytes in UTF-8.
func (c *canonicalHasher) compareNames(a, b *node) int {
	x, y := c.src[a.name+1:a.colon-1], c.src[b.name+1:b.colon-1]
	if !a.nameEscaped && !b.nameEscaped {
		return bytes.Compare(x, y)
	}
	for len(x) > 0 && len(y) > 0 {
		r, n := decodeChar(x)
		s, m := decodeChar(y)
		if r != s {
			return cmp.Compare(r, s) // runes are in the order of their bytes
		}
		x, y = x[n:], y[m:]
	}
	return cmp.Compare(len(x), len(y))
}

// writeValue gives the form of a value to the hash.
func (c *canonicalHasher) writeValue(n int32) {
	v := c.nodes[n]
	switch open := c.src[v.start]; open {
	case '{', '[':
		c.out = append(c.out, open)
		for m := v.first; m != 0; m = c.nodes[m].next {
			if m != v.first {
				c.out = append(c.out, ',')
			}
			if open == '{' {
				k := c.nodes[m]
				c.writeScalar(c.src[k.name:k.colon], k.nameEscaped)
				c.out = append(c.out, ':')
			}
			c.writeValue(m)
		}
		c.out = append(c.out, open+2) // the bracket that closes it
	default:
		c.writeScalar(c.src[v.start:v.end], v.escaped)
	}
}

// writeScalar gives a value that has nothing inside to the hash.
func (c *canonicalHasher) writeScalar(raw []byte, escaped bool) {
	if !escaped {
		if len(raw) < piece {
			c.out = append(c.out, raw...)
		} else {
			c.flushOut()
			c.sum.Write(raw)
		}
	} else {
		c.out = append(c.out, '"')
		for raw = raw[1 : len(raw)-1]; len(raw) > 0; {
			r, n := decodeChar(raw)
			raw = raw[n:]
			if c.out = rawjson.AppendRune(c.out, r); len(c.out) >= piece {
				c.flushOut()
			}
		}
		c.out = append(c.out, '"')
	}
	if len(c.out) >= piece {
		c.flushOut()
	}
}

func (c *canonicalHasher) flushOut() {
	c.sum.Write(c.out)
	c.out = c.out[:0]
}
