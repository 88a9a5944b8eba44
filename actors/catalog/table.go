package catalog

import "maps"

// table is an immutable map in 256 parts. An edit copies the parts that it touches, so that one server's change costs a
// few hundred entries instead of all ten thousand. The zero value is empty.
type table[V any] struct{ parts [256]map[string]V }

// get returns the zero value for a key that is not there.
func (t *table[V]) get(key string) V { return t.parts[partOf(key)][key] }

// all calls yield for every key, in no order.
func (t *table[V]) all(yield func(key string, v V) bool) {
	for _, p := range t.parts {
		for k, v := range p {
			if !yield(k, v) {
				return
			}
		}
	}
}

// tableEdit makes the successor of a table.
type tableEdit[V any] struct {
	next  *table[V]
	owned [256]bool
}

// startEdit begins a successor that shares all parts with t.
func (t *table[V]) startEdit() *tableEdit[V] {
	next := *t
	return &tableEdit[V]{next: &next}
}

// ownPart returns the part of a key, copied when it is first written: readers still use the old one.
func (e *tableEdit[V]) ownPart(key string) map[string]V {
	i := partOf(key)
	// The first write to a part copies it, later ones change the copy.
	if !e.owned[i] {
		e.owned[i] = true
		if e.next.parts[i] = maps.Clone(e.next.parts[i]); e.next.parts[i] == nil {
			e.next.parts[i] = map[string]V{}
		}
	}
	return e.next.parts[i]
}

func (e *tableEdit[V]) set(key string, v V) { e.ownPart(key)[key] = v }
func (e *tableEdit[V]) delete(key string)   { delete(e.ownPart(key), key) }

// partOf spreads keys over the parts, eight bytes at a time, because names share their beginnings, and the tools of a server
// their ends. No result that a reader can see depends on it.
func partOf(key string) uint8 {
	const prime = 0x9e3779b97f4a7c15 // 2⁶⁴ / golden ratio, odd
	h := uint64(len(key))
	i := 0
	for ; i+8 <= len(key); i += 8 {
		w := key[i : i+8]
		h ^= uint64(w[0]) | uint64(w[1])<<8 | uint64(w[2])<<16 | uint64(w[3])<<24 |
			uint64(w[4])<<32 | uint64(w[5])<<40 | uint64(w[6])<<48 | uint64(w[7])<<56
		h *= prime
		h ^= h >> 32
	}
	for ; i < len(key); i++ {
		h = (h ^ uint64(key[i])) * prime
	}
	return uint8(h >> 56)
}
