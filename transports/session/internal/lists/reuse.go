package lists

import "bytes"

// ReuseEntries lets a list that is being read share the memory of the entries of an earlier list that are the same byte for
// byte. They are nearly always in the same order, so it looks only at the next two: enough to see one that was inserted,
// changed or removed between equal ones. Only the memory of new entries is added then. identify returns the bytes that an
// entry was read from, and its key.
func (l *Collector[T]) ReuseEntries(earlier []T, identify func(*T) (raw []byte, key string)) {
	if len(earlier) == 0 {
		return
	}
	next := 0 // the first of earlier that was not found yet
	l.findKnown = func(raw []byte) (entry T, key string, ok bool) {
		for i := next; i < min(next+2, len(earlier)); i++ {
			if known, key := identify(&earlier[i]); bytes.Equal(known, raw) {
				next = i + 1
				return earlier[i], key, true
			}
		}
		return entry, "", false
	}
	// The kind is shared by all sessions, so a copy of it gets the wrapped function.
	read := l.kind.Read
	kind := *l.kind
	kind.Read = func(raw []byte) (T, string, string) {
		entry, key, reason := read(raw)
		// The same entry with another definition: the search goes on behind it.
		if next < len(earlier) {
			if _, known := identify(&earlier[next]); known == key {
				next++
			}
		}
		return entry, key, reason
	}
	l.kind = &kind
}

// OnlyReused reports whether every entry that was read is one of the earlier list, and none was quarantined.
func (l *Collector[T]) OnlyReused() bool {
	return l.findKnown != nil && l.newCount == 0 && len(l.Quarantined) == 0
}
