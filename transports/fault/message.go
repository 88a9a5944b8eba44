package fault

import (
	"bytes"
	"encoding/json"
)

// message is what a flow reads of one JSON-RPC message.
type message struct {
	body   []byte
	id     string // as JSON, empty if there is none
	method string // of an answer: that of its request
	tool   string // the tool, prompt or URI
	answer bool
	server bool // the server's own request or notification
	call   *call
	cursor *string
	token  json.RawMessage // of progress
	// cancels is the id of the request that a notifications/cancelled is about.
	cancels string
}

// readMessage takes a message apart, as far as that is needed. ok is false if it is none.
func readMessage(body []byte) (m message, ok bool) {
	var e struct {
		ID     json.RawMessage `json:"id"`
		Method *string         `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if json.Unmarshal(body, &e) != nil {
		return m, false
	}
	m.body = body
	if len(e.ID) > 0 && string(e.ID) != "null" {
		m.id = string(e.ID)
	}
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
		// A param of another type is not ours to judge: what could be read counts.
		_ = json.Unmarshal(e.Params, &p)
		m.tool, m.cursor, m.token = p.Name, p.Cursor, p.Meta.Token
		if m.tool == "" {
			m.tool = p.URI
		}
		if m.method == "notifications/cancelled" {
			m.cancels = string(p.RequestID)
		}
	}
	return m, true
}

// member is one member of an object, its value as it stands.
type member struct {
	key   string
	value json.RawMessage
}

// readObject reads the members of an object in their order; nil if it is none.
func readObject(raw []byte) []member {
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

func memberValue(o []member, key string) json.RawMessage {
	for _, m := range o {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// setMember replaces a member, or adds it; a nil value takes it away.
func setMember(o []member, key string, value json.RawMessage) []member {
	for i, m := range o {
		if m.key == key {
			if value == nil {
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

func quoteJSON(s string) json.RawMessage {
	b, err := json.Marshal(s)
	if err != nil { // a string is always marshalled
		return json.RawMessage(`""`)
	}
	return b
}

// readArray are those of an array, nil if it is none.
func readArray(raw []byte) []json.RawMessage {
	var out []json.RawMessage
	if json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}

func encodeArray(elements []json.RawMessage) json.RawMessage {
	parts := make([][]byte, len(elements))
	for i, e := range elements {
		parts[i] = e
	}
	return append(append([]byte{'['}, bytes.Join(parts, []byte{','})...), ']')
}

// changeAt changes the member of an object that path leads to. change is given nil if it is not there, and takes it away by
// returning nil. It reports false, and changes nothing, if the way there leads through something that is no object.
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
	v, ok := changeAt(value, change, path[1:]...)
	if !ok {
		return raw, false
	}
	return encodeObject(setMember(o, path[0], v)), true
}
