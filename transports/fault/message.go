package fault

import (
	"bytes"
	"encoding/json"
)

// message is a flow's view of one JSON-RPC message.
type message struct {
	// body is replaced, and never changed in place, because the caller's bytes must stay.
	body   []byte
	id     string // as JSON, empty if there is none
	method string // of an answer: that of its request
	tool   string // the tool, prompt or URI
	answer bool
	server bool            // the message is a request or a notification of the server
	call   *call           // the request: of an answer the one that it answers; nil if unknown
	cursor *string         // params.cursor; nil if there is none
	token  json.RawMessage // the progress token as JSON
	// cancels is the id (as JSON) of the request that a notifications/cancelled is about, else empty.
	cancels string
}

// readMessage reads one message as far as faults need it. ok is false if it is no JSON-RPC message.
func readMessage(body []byte) (m message, ok bool) {
	// Unmarshal is used here, and not the scanner of the session (package jsonrpc): a rule costs more anyway, and the proxy must
	// accept what any agent sends.
	var e struct {
		ID     json.RawMessage `json:"id"`
		Method *string         `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if json.Unmarshal(body, &e) != nil {
		return m, false
	}
	m.body = body
	// An id of null is none: the message is a notification.
	if len(e.ID) > 0 && string(e.ID) != "null" {
		m.id = string(e.ID)
	}
	// A message without a method is an answer; without an id nothing shows which request it answers.
	if e.Method == nil {
		m.answer = true
		return m, m.id != ""
	}
	m.method = *e.Method
	if len(e.Params) > 0 {
		var p struct {
			Name      string          `json:"name"`
			URI       string          `json:"uri"`
			Cursor    *string         `json:"cursor"`
			RequestID json.RawMessage `json:"requestId"`
			Meta      struct {
				Token json.RawMessage `json:"progressToken"`
			} `json:"_meta"`
		}
		// A param of another type is left to the receiver: the members that could be read count.
		_ = json.Unmarshal(e.Params, &p)
		m.tool, m.cursor, m.token = p.Name, p.Cursor, p.Meta.Token
		// A resource is named by its URI, and rules match it with the same key.
		if m.tool == "" {
			m.tool = p.URI
		}
		if m.method == "notifications/cancelled" {
			m.cancels = string(p.RequestID)
		}
	}
	return m, true
}

// A member is one member of an object, its value as it stands. Objects are kept as lists of members, because a map
// would lose their order and duplicates.
type member struct {
	key   string
	value json.RawMessage
}

// readObject reads the members of an object in their order; nil if raw is no object.
func readObject(raw []byte) []member {
	// The decoder reads token by token, because Unmarshal into a map would lose the order of the members.
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	out := []member{}
	for d.More() {
		t, err := d.Token()
		key, ok := t.(string)
		if err != nil || !ok {
			return nil
		}
		var v json.RawMessage
		if d.Decode(&v) != nil {
			return nil
		}
		out = append(out, member{key, v})
	}
	return out
}

// memberValue returns the value of the first member with a key, nil if there is none.
func memberValue(o []member, key string) json.RawMessage {
	for _, m := range o {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// setMember replaces the value of a member, or adds the member at the end; a nil value removes it. It may reuse o.
func setMember(o []member, key string, value json.RawMessage) []member {
	for i, m := range o {
		if m.key == key {
			if value == nil {
				// The full slice expression makes append copy: other holders of o keep their members.
				return append(o[:i:i], o[i+1:]...)
			}
			o[i].value = value
			return o
		}
	}
	if value == nil {
		return o
	}
	return append(o, member{key, value})
}

// encodeObject writes an object without spaces; the values keep their bytes.
func encodeObject(o []member) json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quoteJSON(m.key))
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// quoteJSON returns s as a JSON string.
func quoteJSON(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil { // a string is always marshalled
		return json.RawMessage(`""`)
	}
	return b
}

// readArray returns the elements of an array, nil if raw is no array.
func readArray(raw []byte) []json.RawMessage {
	var out []json.RawMessage
	if json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}

// encodeArray writes an array without spaces; the elements keep their bytes.
func encodeArray(elements []json.RawMessage) json.RawMessage {
	// RawMessages are already valid JSON, so joining them is enough.
	parts := make([][]byte, len(elements))
	for i, e := range elements {
		parts[i] = e
	}
	return append(append([]byte{'['}, bytes.Join(parts, []byte{','})...), ']')
}

// changeAt changes the member of an object that path leads to. change gets nil if the member is not there, and
// removes it by returning nil. It reports false, and changes nothing, if path leads through something that is no
// object.
func changeAt(raw []byte, change func(json.RawMessage) json.RawMessage, path ...string) ([]byte, bool) {
	if len(path) == 0 {
		return change(raw), true
	}
	o := readObject(raw)
	if o == nil {
		return raw, false
	}
	value := memberValue(o, path[0])
	if len(path) == 1 {
		return encodeObject(setMember(o, path[0], change(value))), true
	}
	if value == nil {
		return raw, false
	}
	// The objects on the way are encoded again with the changed member, from the inside out.
	v, ok := changeAt(value, change, path[1:]...)
	if !ok {
		return raw, false
	}
	return encodeObject(setMember(o, path[0], v)), true
}
