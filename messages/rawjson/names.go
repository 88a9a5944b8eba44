package rawjson

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// CheckNames refuses an object, at any depth, that has two names which are equal or alike but for case, with a
// [*NameError], and bytes that are no JSON with an [*Error]. Programs differ in which of two such members they take.
//
// Case is folded as encoding/json does it, by Unicode's simple folding: ſ is s, and the sign of kelvin is k. Bytes that
// are no UTF-8, and lone surrogates, count as U+FFFD, because many readers replace them with it.
func CheckNames(data []byte) error { return checkNames(data, true) }

// CheckDoubled refuses equal names only, and accepts names that differ in case, as in the schemas of tools, whose
// arguments may be called a and A.
func CheckDoubled(data []byte) error { return checkNames(data, false) }

// checkNames checks one value with whitespace around it; fold also compares names without case.
func checkNames(data []byte, fold bool) error {
	c := nameChecker{b: data, fold: fold}
	end, fault := c.checkValue(SkipSpace(data, 0), 0)
	switch {
	case fault == nil:
		// Bytes after the value would be read by another program.
		if end = SkipSpace(data, end); end != len(data) {
			return &Error{Offset: int64(end), Reason: "it is not valid JSON"}
		}
		return nil
	case fault.first == nil:
		return &Error{Path: fault.jsonPointer(), Offset: int64(fault.offset), Reason: "it is not valid JSON"}
	}
	return &NameError{Path: fault.jsonPointer(), First: replaceInvalid(string(fault.first)), Second: replaceInvalid(string(fault.second))}
}

// nameChecker walks over the bytes of one value.
type nameChecker struct {
	b    []byte
	fold bool
}

// nameProblem says why a check ended: at bytes that are no JSON (first is nil), or at two names. path leads to the
// object, the innermost step first: the recursion appends its steps on the way out, so that a check which finds nothing
// allocates nothing.
type nameProblem struct {
	offset        int
	first, second []byte
	path          []step
}

// step is the name of a member or, if name is nil, the index of an element.
type step struct {
	name  []byte
	index int
}

// checkValue checks the value at b[i] and returns the index after it. depth counts the arrays and objects around it;
// the walks and SkipValue refuse more than MaxDepth of them, which bounds the recursion.
func (c *nameChecker) checkValue(i, depth int) (end int, fault *nameProblem) {
	switch {
	case i < len(c.b) && c.b[i] == '{':
		return c.checkObject(i, depth)
	case i < len(c.b) && c.b[i] == '[':
		return c.checkArray(i, depth)
	}
	if end = SkipValue(c.b, i, depth); end < 0 {
		return 0, &nameProblem{offset: i}
	}
	return end, nil
}

// checkArray checks the elements of the array at b[i].
func (c *nameChecker) checkArray(i, depth int) (end int, fault *nameProblem) {
	a := ArrayAt(c.b, i, depth)
	for n := 0; a.Next(); n++ {
		if end, fault = c.checkValue(a.Position(), a.Depth()); fault != nil {
			fault.path = append(fault.path, step{index: n})
			return 0, fault
		}
		a.MoveTo(end)
	}
	if end = a.End(); end < 0 {
		return 0, &nameProblem{offset: i}
	}
	return end, nil
}

// fewNames bounds the names that are compared pairwise. Beyond it a map is faster, and keeps the time linear for an
// object with a million names.
const fewNames = 8

// checkObject checks the names and values of the object at b[i].
func (c *nameChecker) checkObject(i, depth int) (end int, fault *nameProblem) {
	o := ObjectAt(c.b, i, depth)
	// The array lives on the stack, so that small objects need no allocation.
	var few [fewNames][]byte
	names := few[:0]
	var set map[string][]byte
	for o.Next() {
		name := o.Name
		// The object has more names: those seen so far go into the map.
		if set == nil && len(names) == fewNames {
			set = make(map[string][]byte, 4*fewNames)
			for _, n := range names {
				set[c.compareKey(n)] = n
			}
		}
		if set == nil {
			for _, n := range names {
				if c.sameName(n, name) {
					return 0, &nameProblem{first: n, second: name}
				}
			}
			names = append(names, name)
		} else {
			key := c.compareKey(name)
			if first, there := set[key]; there {
				return 0, &nameProblem{first: first, second: name}
			}
			set[key] = name
		}
		// The value is checked after its name, so that the first fault in the order of the text is reported.
		if end, fault = c.checkValue(o.Position(), o.Depth()); fault != nil {
			fault.path = append(fault.path, step{name: name})
			return 0, fault
		}
		o.MoveTo(end)
	}
	if end = o.End(); end < 0 {
		return 0, &nameProblem{offset: i}
	}
	return end, nil
}

// compareKey returns a text that is equal for names of which only one can be meant.
func (c *nameChecker) compareKey(name []byte) string {
	if c.fold {
		return Fold(string(name))
	}
	return replaceInvalid(string(name))
}

// sameName reports whether only one of two names can be meant. It compares ASCII without allocating, and goes to
// compareKey at the first other character, because folding may change the length.
func (c *nameChecker) sameName(a, b []byte) bool {
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i]|b[i] >= utf8.RuneSelf {
			return c.compareKey(a) == c.compareKey(b)
		}
		if a[i] != b[i] && (!c.fold || lowerByte(a[i]) != lowerByte(b[i])) {
			return false
		}
	}
	return len(a) == len(b)
}

// jsonPointer returns the path as RFC 6901 writes it, the outermost step first.
func (f *nameProblem) jsonPointer() string {
	var b strings.Builder
	for _, s := range slices.Backward(f.path) {
		b.WriteByte('/')
		if s.name == nil {
			b.WriteString(strconv.Itoa(s.index))
			continue
		}
		b.WriteString(strings.ReplaceAll(strings.ReplaceAll(replaceInvalid(string(s.name)), "~", "~0"), "/", "~1"))
	}
	return b.String()
}

// replaceInvalid returns s with U+FFFD for each byte that is no UTF-8, as decoders of JSON replace it.
func replaceInvalid(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return string([]rune(s))
}

// lowerByte returns the lower case of an ASCII letter, and other bytes unchanged.
func lowerByte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// Fold returns the common form of all names that are alike but for case: each character becomes the smallest of those
// that Unicode's simple folding takes for the same, and bytes that are no UTF-8 become U+FFFD.
func Fold(name string) string {
	return strings.Map(func(r rune) rune {
		// SimpleFold goes through the equivalent characters in ascending order, and back to the smallest.
		for {
			next := unicode.SimpleFold(r)
			if next <= r {
				return next
			}
			r = next
		}
	}, name)
}
