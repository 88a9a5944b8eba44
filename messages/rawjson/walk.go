package rawjson

import "bytes"

// Walk is the common part of Array and Object: values between brackets, separated by commas. After Next has returned
// true, Position is the first byte of a value, and the caller moves behind that value by Skip, or by its own reading
// and MoveTo. A fault ends the walk: Next returns false from then on, and End returns -1.
type Walk struct {
	b []byte
	// i is the index of the next byte, -1 after a fault.
	i int
	// depth counts the arrays and objects around the values, this one included.
	depth int
	// close is the closing bracket. started is set after the first value, before which no comma stands.
	close   byte
	started bool
	closed  bool
}

// openAt begins a walk behind the opening bracket at b[i].
func (w *Walk) openAt(b []byte, i, depth int, end byte) {
	*w = Walk{b: b, i: i + 1, depth: depth + 1, close: end}
	if w.depth > MaxDepth {
		w.i = -1
	}
}

// advance moves to the next value or name and reports whether there is one.
func (w *Walk) advance() bool {
	if w.i < 0 || w.closed {
		return false
	}
	i := SkipSpace(w.b, w.i)
	if i >= len(w.b) {
		w.i = -1
		return false
	}
	// A comma before the bracket is refused, because the caller finds no value behind it.
	if w.b[i] == w.close {
		w.i, w.closed = i+1, true
		return false
	}
	if w.started {
		if w.b[i] != ',' {
			w.i = -1
			return false
		}
		i = SkipSpace(w.b, i+1)
	}
	w.i, w.started = i, true
	return true
}

// Skip moves behind the value and returns its bytes, which share memory with the walk's; nil if it is not valid.
func (w *Walk) Skip() []byte {
	if w.i < 0 {
		return nil
	}
	start := w.i
	if w.i = SkipValue(w.b, w.i, w.depth); w.i < 0 {
		return nil
	}
	return w.b[start:w.i]
}

// Position returns the index at which the next value begins or the last one has ended, -1 after a fault.
func (w *Walk) Position() int { return w.i }

// Depth returns the number of arrays and objects around the values.
func (w *Walk) Depth() int { return w.depth }

// MoveTo sets the index after a value that the caller has read by itself, or -1 for a fault in it.
func (w *Walk) MoveTo(i int) { w.i = i }

// End returns the index after the closing bracket, -1 if it was not reached or something before it is not valid.
func (w *Walk) End() int {
	if !w.closed {
		return -1
	}
	return w.i
}

// Array iterates over the elements of an array.
type Array struct{ Walk }

// ArrayAt begins a walk over the array at b[i], which is '['. depth is the number of arrays and objects around it.
func ArrayAt(b []byte, i, depth int) (a Array) {
	a.openAt(b, i, depth, ']')
	return a
}

// Next moves to the next element and reports whether there is one.
func (a *Array) Next() bool { return a.advance() }

// Object iterates over the members of an object, doubled names included, in the order of the text.
type Object struct {
	Walk
	// Name is the name of the current member, without escapes. It may share memory with the walk's bytes, and is valid
	// until they change.
	Name []byte
}

// ObjectAt begins a walk over the object at b[i], which is '{'. depth is the number of arrays and objects around it.
func ObjectAt(b []byte, i, depth int) (o Object) {
	o.openAt(b, i, depth, '}')
	return o
}

// Next moves to the value of the next member and reports whether there is one.
func (o *Object) Next() bool {
	if !o.advance() {
		return false
	}
	// A name is a text; everything else ends the walk as a fault.
	if o.i >= len(o.b) || o.b[o.i] != '"' {
		o.i = -1
		return false
	}
	end := SkipText(o.b, o.i)
	if end < 0 {
		o.i = -1
		return false
	}
	o.Name = o.b[o.i+1 : end-1]
	// A name with escapes is rare and legal: "\u0069d" is the name id.
	if bytes.IndexByte(o.Name, '\\') >= 0 {
		if text, ok := Text(o.b[o.i:end]); ok {
			o.Name = []byte(text)
		}
	}
	if end = SkipSpace(o.b, end); end >= len(o.b) || o.b[end] != ':' {
		o.i = -1
		return false
	}
	o.i = SkipSpace(o.b, end+1)
	return true
}

// Member returns the value of a member of an object, the last one of several with that exact name; nil if there is none
// or raw is no object. Members after a fault are not found.
func Member(raw []byte, name string) (found []byte) {
	if !IsObject(raw) {
		return nil
	}
	o := ObjectAt(raw, 0, 0)
	for o.Next() {
		if value := o.Skip(); string(o.Name) == name {
			found = value
		}
	}
	return found
}
