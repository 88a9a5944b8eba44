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
// each value is and puts the members of objects in order, another writes the form to the hash piece by piece. So its
// memory depends on the number of values and not on their length, and is used again for the next text.
type canonicalHasher struct {
	src     []byte
	nodes   []node
	order   []int32 // scratch space for sortMembers
	out     []byte  // the part of the form that is not hashed yet
	sum     hash.Hash
	lastSum []byte // reused for the result
}

// node is one value of the text. All numbers are offsets into src, or indexes of nodes.
type node struct {
	// start and end delimit the value; name and colon delimit its name, quotes included, if it is a member of an object.
	start, end, name, colon int32
	// first is the node of its first element or member, next that of the following one of its parent; 0 for none.
	first, next int32
	// escaped and nameEscaped say that the text is not in canonical form as it is written.
	escaped, nameEscaped bool
}

const (
	// maxDepth bounds the nesting, as in encoding/json.
	maxDepth = 10_000
	// piece bounds the bytes of the form that are gathered for one call of the hash.
	piece = 4 << 10
	// keptNodes bounds the memory that is kept for the next text.
	keptNodes = 1 << 12
)

// hash returns the SHA-256 of the canonical form of src, or of src itself if that is no JSON.
func (c *canonicalHasher) hash(src []byte) (sum [sha256.Size]byte) {
	// A text that is no JSON has no canonical form; its own bytes are hashed.
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
	c.src = nil // it belongs to the caller
	// One very large text must not hold its memory in the pool.
	if cap(c.nodes) > keptNodes {
		c.nodes, c.order = nil, nil
	}
	return sum
}

// parseText notes all values of src, the outermost first. It reports false for a text that is no JSON.
func (c *canonicalHasher) parseText(src []byte) bool {
	c.src, c.nodes, c.out = src, c.nodes[:0], c.out[:0]
	// The offsets of nodes have 32 bits.
	if len(src) > math.MaxInt32 {
		return false
	}
	end, ok := c.noteValue(c.skipSpace(0), 0)
	return ok && c.skipSpace(end) == len(src)
}

// skipSpace returns the place behind JSON's white space.
func (c *canonicalHasher) skipSpace(at int) int {
	for at < len(c.src) && (c.src[at] == ' ' || c.src[at] == '\t' || c.src[at] == '\r' || c.src[at] == '\n') {
		at++
	}
	return at
}

func (c *canonicalHasher) hasByte(at int, b byte) bool { return at < len(c.src) && c.src[at] == b }

// noteValue notes the value at a place, at a depth, and returns where it ends.
func (c *canonicalHasher) noteValue(at, depth int) (end int, ok bool) {
	if at >= len(c.src) {
		return at, false
	}
	// The node is reserved first, so that the outermost value is node 0.
	self := len(c.nodes)
	c.nodes = append(c.nodes, node{start: int32(at)}) //nolint:gosec // parse bounds it
	escaped := false
	switch b := c.src[at]; b {
	// Arrays and objects recurse; maxDepth bounds the stack.
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

// matchWord reports whether true, false or null stands at a place.
func (c *canonicalHasher) matchWord(at int, word string) (end int, ok bool) {
	end = at + len(word)
	return end, end <= len(c.src) && string(c.src[at:end]) == word
}

// noteMembers notes the values between the brackets of an array or an object, whose node is self. Members that are in order
// already, as most programs write them, need no sorting.
func (c *canonicalHasher) noteMembers(self, at, depth int, object bool) (end int, ok bool) {
	// Objects differ from arrays only in their names and their closing bracket.
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
		// noteValue has made the node; append may have moved it since, so it is addressed anew.
		current := &c.nodes[n]
		current.name, current.colon, current.nameEscaped = member.name, member.colon, member.nameEscaped
		// Node 0 is the outermost value and no member, so 0 can stand for none.
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

// sortMembers puts the members of an object in the order of their names. Of several with one name the last one counts, as for most
// readers.
func (c *canonicalHasher) sortMembers(object int) {
	c.order = c.order[:0]
	for n := c.nodes[object].first; n != 0; n = c.nodes[n].next {
		c.order = append(c.order, n)
	}
	slices.SortFunc(c.order, func(a, b int32) int {
		if d := c.compareNames(&c.nodes[a], &c.nodes[b]); d != 0 {
			return d
		}
		// Equal names stay in the order of the text, so that the last of them can be chosen.
		return cmp.Compare(a, b)
	})
	next := int32(0)
	// From the last one back: of members with equal names the first one met is the last in the text.
	for i := len(c.order) - 1; i >= 0; i-- {
		n := c.order[i]
		if next != 0 && c.compareNames(&c.nodes[n], &c.nodes[next]) == 0 {
			continue
		}
		c.nodes[n].next, next = next, n
	}
	c.nodes[object].first = next
}

// compareNames compares the names of two members as bytes in UTF-8, after their escapes.
func (c *canonicalHasher) compareNames(a, b *node) int {
	x, y := c.src[a.name+1:a.colon-1], c.src[b.name+1:b.colon-1]
	if !a.nameEscaped && !b.nameEscaped {
		return bytes.Compare(x, y)
	}
	// Escaped and plain characters are compared by what they mean.
	for len(x) > 0 && len(y) > 0 {
		// Each step compares one character of either name, escaped or not.
		r, n := decodeChar(x)
		s, m := decodeChar(y)
		if r != s {
			return cmp.Compare(r, s) // UTF-8 has the order of the runes
		}
		x, y = x[n:], y[m:]
	}
	return cmp.Compare(len(x), len(y))
}

// writeValue writes the canonical form of a value.
func (c *canonicalHasher) writeValue(n int32) {
	// The members are linked in canonical order, so writing them is a walk.
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

// writeScalar writes a text, number or word. A long one that needs no change goes to the hash directly.
func (c *canonicalHasher) writeScalar(raw []byte, escaped bool) {
	if !escaped {
		// A short value is gathered with others; a long one goes to the hash without a copy.
		if len(raw) < piece {
			c.out = append(c.out, raw...)
		} else {
			c.flushOut()
			c.sum.Write(raw)
		}
	} else {
		// Each escape is replaced by its character, and only what JSON demands is escaped again.
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

// flushOut hands the gathered part of the form to the hash.
func (c *canonicalHasher) flushOut() {
	c.sum.Write(c.out)
	c.out = c.out[:0]
}
