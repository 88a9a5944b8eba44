package rawjson

// With returns an object in which a member has another value: where it stands, or else at the beginning. Of several with that name the last one
// gets it. Everything else keeps its bytes; what is no object is returned as it is.
func With(object []byte, name string, value []byte) []byte {
	begin := SkipSpace(object, 0)
	if begin >= len(object) || object[begin] != '{' {
		return object
	}
	start, end, empty := -1, -1, true
	for o := ObjectAt(object, begin, 0); o.Next(); empty = false {
		at := o.Position()
		if o.Skip(); string(o.Name) == name {
			start, end = at, o.Position()
		}
	}
	b := make([]byte, 0, len(object)+len(name)+len(value)+8)
	if start >= 0 && end > start {
		b = append(append(b, object[:start]...), value...)
		return append(b, object[end:]...)
	}
	b = append(appendText(append(b, object[:begin+1]...), name), ':')
	if b = append(b, value...); !empty {
		b = append(b, ',')
	}
	return append(b, object[begin+1:]...)
}

// Without returns an object without the members of a name. The others keep their bytes, and the space around them goes; what is no object is
// returned as it is, and so is one that has no such member.
func Without(object []byte, name string) []byte {
	if Member(object, name) == nil {
		return object
	}
	b := []byte{'{'}
	for o := ObjectAt(object, 0, 0); o.Next(); {
		value := o.Skip()
		if string(o.Name) == name {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(appendText(b, string(o.Name)), ':')
		b = append(b, value...)
	}
	return append(b, '}')
}
