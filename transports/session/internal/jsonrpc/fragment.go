package jsonrpc

import "github.com/mcpvisor/mcpvisor/messages/rawjson"

// FindAnsweredID finds out which request a message answers whose middle is missing (head and tail are its first and last
// bytes), or which is not valid JSON as a whole. certain is false if the bytes do not show it; id is 0 then. An id of 0 that
// is certain means that the message answers no request of ours: it has a method.
//
// The members that can be read are those before the first one that the head cuts off, and those after the last one that the
// tail cuts off. That is enough in practice: serialisers write id before the result or right after it.
func FindAnsweredID(head, tail []byte) (id int64, certain bool) {
	// evidence is true once a member shows that this is an answer at all, and not a log line with an id.
	found, evidence := int64(0), false
	// A method decides: the message is a request or a notification, and an id in it is the server's own.
	note := func(key, value []byte) {
		switch string(key) {
		case "method":
			found, certain = 0, true
		case "id":
			if !certain {
				found = IDOf(value)
			}
		case "jsonrpc", "result", "error":
			evidence = true
		}
	}
	visitFirstMembers(head, note)
	visitLastMembers(tail, note)
	if certain {
		return 0, true
	}
	// Without evidence an id could be that of a log line.
	if found > 0 && evidence {
		return found, true
	}
	return 0, false
}

// visitFirstMembers visits the members of the object that head begins with, as far as they are complete in head.
func visitFirstMembers(head []byte, visitMember func(key, value []byte)) {
	i := rawjson.SkipSpace(head, 0)
	if i >= len(head) || head[i] != '{' {
		return
	}
	m := rawjson.ObjectAt(head, i, 0)
	for m.Next() {
		key := m.Name
		value := m.Skip()
		if m.Position() < 0 || m.Position() >= len(head) {
			// The value is cut off, or may be: 12 can be the beginning of 123. The key is complete, and a key such as result
			// is evidence.
			visitMember(key, nil)
			return
		}
		visitMember(key, value)
	}
}

// visitLastMembers visits the members of the object that tail ends with, from the last one backwards, as far as they are
// complete in tail. Reading JSON backwards is sound because a quote inside a string is always preceded by an odd number of
// backslashes, and the quote that opens a string never is.
func visitLastMembers(tail []byte, visitMember func(key, value []byte)) {
	i := skipSpaceBack(tail, len(tail))
	if i == 0 || tail[i-1] != '}' {
		return
	}
	// Each round reads one member from its end: value, colon, key, and the comma before it.
	for i--; ; i-- {
		end := skipSpaceBack(tail, i)
		start := valueStart(tail, end)
		colon := skipSpaceBack(tail, start) - 1
		if start < 0 || colon < 0 || tail[colon] != ':' {
			return
		}
		keyEnd := skipSpaceBack(tail, colon)
		key := stringStart(tail, keyEnd)
		if key < 0 {
			return
		}
		if text, ok := rawjson.Text(tail[key:keyEnd]); ok {
			visitMember([]byte(text), tail[start:end])
		}
		if i = skipSpaceBack(tail, key); i == 0 || tail[i-1] != ',' {
			return
		}
	}
}

// skipSpaceBack returns the index after the last byte before i that is not whitespace.
func skipSpaceBack(b []byte, i int) int {
	for i > 0 && (b[i-1] == ' ' || b[i-1] == '\n' || b[i-1] == '\r' || b[i-1] == '\t') {
		i--
	}
	return i
}

// valueStart returns the index of the first byte of the value that ends before end, -1 if that byte is not in b.
func valueStart(b []byte, end int) int {
	if end <= 0 {
		return -1
	}
	switch b[end-1] {
	case '"':
		return stringStart(b, end)
	case '}', ']':
		depth := 0
		for i := end - 1; i >= 0; i-- {
			switch b[i] {
			// A brace inside a string does not count, so strings are skipped as a whole.
			case '"':
				if i = stringStart(b, i+1); i < 0 {
					return -1
				}
			case '}', ']':
				depth++
			case '{', '[':
				if depth--; depth == 0 {
					return i
				}
			}
		}
		return -1
	}
	// A number or a word. One that begins with b may be cut off, so it is not trusted.
	i := end
	for i > 0 && isScalar(b[i-1]) {
		i--
	}
	if i == 0 || i == end {
		return -1
	}
	return i
}

// isScalar reports whether c can be part of a number, true, false or null. It accepts words such as NaN, because the message
// may be invalid for just that reason.
func isScalar(c byte) bool {
	return isDigit(c) || c == '-' || c == '+' || c == '.' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// stringStart returns the index of the opening quote of the string that ends before end, -1 if it is not in b.
func stringStart(b []byte, end int) int {
	if end <= 0 || b[end-1] != '"' {
		return -1
	}
	for i := end - 2; i >= 0; i-- {
		if b[i] != '"' {
			continue
		}
		// Count the backslashes before the quote: an odd number escapes it.
		slashes := 0
		for slashes < i && b[i-slashes-1] == '\\' {
			slashes++
		}
		switch {
		case slashes == i || slashes > 0 && slashes%2 == 0:
			// An even number of backslashes cannot stand before a quote that opens a string; and if all bytes before the
			// quote are backslashes, the missing bytes decide whether it is escaped.
			return -1
		case slashes == 0:
			return i
		}
	}
	return -1
}
