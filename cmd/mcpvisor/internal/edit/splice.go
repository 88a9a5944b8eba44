package edit

import (
	"bytes"
	"encoding/json"

	"github.com/tailscale/hujson"
)

// style is the layout of a text, which new members follow.
type style struct {
	// newline is "\n" or "\r\n".
	newline string
	// unit is one step of indentation: spaces or tabs.
	unit string
}

// styleOf takes the line ending of the first line, and as unit the first indentation by which a member exceeds its object. A
// text without either gets "\n" and two spaces.
func styleOf(body []byte, root hujson.Value) style {
	s := style{newline: "\n", unit: "  "}
	if i := bytes.IndexByte(body, '\n'); i > 0 && body[i-1] == '\r' {
		s.newline = "\r\n"
	}
	for v := range root.All() {
		o, ok := v.Value.(*hujson.Object)
		if !ok {
			continue
		}
		for _, m := range o.Members {
			inner, own := indentAt(body, m.Name.StartOffset)
			if outer, _ := indentAt(body, v.StartOffset); own && len(inner) > len(outer) {
				s.unit = inner[len(outer):]
				return s
			}
		}
	}
	return s
}

// indentAt returns the white space at the start of the line that holds offset. own reports that nothing else stands before the
// offset in that line.
func indentAt(body []byte, offset int) (indent string, own bool) {
	start := bytes.LastIndexByte(body[:offset], '\n') + 1
	end := start
	for end < offset && (body[end] == ' ' || body[end] == '\t') {
		end++
	}
	return string(body[start:end]), end == offset
}

// splice returns the text with body[a:b] replaced, and with its byte order mark.
func (d document) splice(a, b int, with ...string) []byte {
	out := make([]byte, 0, len(d.byteOrderMark)+len(d.body)+256)
	out = append(append(out, d.byteOrderMark...), d.body[:a]...)
	for _, s := range with {
		out = append(out, s...)
	}
	return append(out, d.body[b:]...)
}

// formatValue lays out a value under an indentation, with the unit and line ending of the text, or on one line.
func (d document) formatValue(value json.RawMessage, indent string, oneLine bool) string {
	var b bytes.Buffer
	var err error
	if oneLine {
		if err = json.Compact(&b, value); err == nil {
			return addSpaces(b.Bytes())
		}
	} else if err = json.Indent(&b, value, indent, d.unit); err == nil {
		return string(bytes.ReplaceAll(b.Bytes(), []byte("\n"), []byte(d.newline)))
	}
	return string(value) // the value was checked to be valid, so that neither fails
}

// addSpaces puts a space behind each comma and colon of compact JSON outside of strings, as people do on one line.
func addSpaces(compact []byte) string {
	out := make([]byte, 0, len(compact)+16)
	quoted := false
	for i := 0; i < len(compact); i++ {
		c := compact[i]
		out = append(out, c)
		switch {
		// An escaped quote does not end the string.
		case quoted && c == '\\':
			i++
			out = append(out, compact[i])
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == ':'):
			out = append(out, ' ')
		}
	}
	return string(out)
}

// onOneLine reports whether a value has members or elements and stands on one line. Empty ones say nothing about the layout.
func (d document) onOneLine(v hujson.Value) bool {
	empty := true
	switch x := v.Value.(type) {
	case *hujson.Object:
		empty = len(x.Members) == 0
	case *hujson.Array:
		empty = len(x.Elements) == 0
	}
	return !empty && !bytes.ContainsRune(d.body[v.StartOffset:v.EndOffset], '\n')
}

// replaceMember replaces the value of a member. The new value stays on one line if the old one or the whole object did.
func (d document) replaceMember(parent hujson.Value, m hujson.ObjectMember, value json.RawMessage) []byte {
	indent, _ := indentAt(d.body, m.Name.StartOffset)
	oneLine := d.onOneLine(m.Value) || d.onOneLine(parent)
	return d.splice(m.Value.StartOffset, m.Value.EndOffset, d.formatValue(value, indent, oneLine))
}

// insertMember adds a member behind the last one of an object.
func (d document) insertMember(parent hujson.Value, o *hujson.Object, key string, value json.RawMessage) []byte {
	outer, _ := indentAt(d.body, parent.StartOffset)
	brace := parent.EndOffset - 1
	written := string(quoteKey(key)) + ": "
	if len(o.Members) == 0 {
		return d.insertFirst(parent, brace, outer, written, value)
	}
	last := o.Members[len(o.Members)-1]
	// hujson marks a trailing comma by a non-nil AfterExtra of the last member.
	trailing := last.Value.AfterExtra != nil
	if d.onOneLine(parent) {
		written = " " + written + d.formatValue(value, outer, true)
		if trailing {
			at := last.Value.EndOffset + len(last.Value.AfterExtra) + 1
			return d.splice(at, at, written, ",")
		}
		return d.splice(last.Value.EndOffset, last.Value.EndOffset, ",", written)
	}
	// The last member may share a line with others, and then tells nothing about the indentation.
	inner, own := indentAt(d.body, last.Name.StartOffset)
	if !own {
		inner = outer + d.unit
	}
	// The member goes behind the comments that follow the last one; the comma goes directly behind the last value, before them.
	end := len(bytes.TrimRight(d.body[:brace], " \t\r\n"))
	written = d.newline + inner + written + d.formatValue(value, inner, false)
	// The closing brace stands on the line of the last member, and gets a line of its own.
	if !bytes.Contains(d.body[end:brace], []byte("\n")) {
		if trailing {
			written += ","
		}
		written += d.newline + outer
	} else if trailing {
		written += ","
	}
	if trailing {
		return d.splice(end, end, written)
	}
	after := last.Value.EndOffset
	return d.splice(after, end, ",", string(d.body[after:end]), written)
}

// insertFirst adds the first member to an object, behind comments that it may hold.
func (d document) insertFirst(parent hujson.Value, brace int, outer, written string, value json.RawMessage) []byte {
	inner := outer + d.unit
	written = d.newline + inner + written + d.formatValue(value, inner, false)
	end := len(bytes.TrimRight(d.body[:brace], " \t\r\n"))
	if end <= parent.StartOffset { // white space only, up to the brace itself
		end = parent.StartOffset + 1
	}
	if bytes.Contains(d.body[end:brace], []byte("\n")) {
		return d.splice(end, end, written)
	}
	return d.splice(end, end, written, d.newline, outer)
}

// removeMember deletes a member, together with the line that would stay empty and the comma that separates nothing any more.
func (d document) removeMember(parent hujson.Value, o *hujson.Object, i int) []byte {
	m := o.Members[i]
	from, to := m.Name.StartOffset, m.Value.EndOffset
	// The only member, with nothing but white space around it, leaves "{}".
	if begin, end := parent.StartOffset+1, parent.EndOffset-1; len(o.Members) == 1 &&
		len(bytes.Trim(d.body[begin:from], " \t\r\n")) == 0 && len(bytes.Trim(d.body[to:end], " \t\r\n,")) == 0 {
		return d.splice(begin, end)
	}
	lastOne := i == len(o.Members)-1
	comma := !lastOne || m.Value.AfterExtra != nil
	if comma {
		to += len(m.Value.AfterExtra) + 1
		if bytes.ContainsAny(m.Value.AfterExtra, "/*") { // a comment stands before the comma, and stays
			return d.keepComment(m)
		}
	}
	// A member that has its lines for itself, perhaps with a comment behind it, leaves no empty line.
	indent, own := indentAt(d.body, from)
	rest := bytes.TrimLeft(d.body[to:parent.EndOffset-1], " \t")
	line := len(d.body[to:parent.EndOffset-1]) - len(rest)
	if comment := lineComment(rest); own && comment > 0 {
		line += comment
		rest = rest[comment:]
	}
	switch {
	case own && bytes.HasPrefix(rest, []byte("\r\n")):
		from, to = from-len(indent), to+line+2
	case own && bytes.HasPrefix(rest, []byte("\n")):
		from, to = from-len(indent), to+line+1
	case comma && !lastOne: // the next member moves up
		to += len(d.body[to:parent.EndOffset-1]) - len(bytes.TrimLeft(d.body[to:parent.EndOffset-1], " \t"))
	case !own:
		from = len(bytes.TrimRight(d.body[:from], " \t"))
	}
	if !lastOne || comma || i == 0 {
		return d.splice(from, to)
	}
	// The member before is the last now, and loses its comma, because nothing in this text ends with a trailing comma.
	before := o.Members[i-1].Value
	at := before.EndOffset + len(before.AfterExtra)
	return d.splice(at, to, string(d.body[at+1:from]))
}

// keepComment removes a member and its comma, and leaves the comment that stands between them.
func (d document) keepComment(m hujson.ObjectMember) []byte {
	end := m.Value.EndOffset + len(m.Value.AfterExtra)
	return d.splice(m.Name.StartOffset, end+1, string(bytes.TrimLeft(m.Value.AfterExtra, " \t")))
}

// lineComment returns the length of a comment that begins b and ends in the same line; 0 if there is none, or if something
// follows the comment.
func lineComment(b []byte) int {
	end := bytes.IndexByte(b, '\n')
	if end < 0 {
		end = len(b)
	}
	switch line := b[:end]; {
	case bytes.HasPrefix(line, []byte("//")):
		return len(bytes.TrimRight(line, "\r"))
	case bytes.HasPrefix(line, []byte("/*")):
		if close := bytes.Index(line[2:], []byte("*/")); close >= 0 && len(bytes.TrimSpace(line[close+4:])) == 0 {
			return len(bytes.TrimRight(line, "\r"))
		}
	}
	return 0
}
