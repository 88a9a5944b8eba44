package pins

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// Version 1 of the file had the hash of a form of our own: hints without "Hint" in their names, members sorted by the bytes of their
// names, numbers as they were written. A hash cannot be converted. So it stays until the tool is seen again, and is replaced then if
// the definition still has it.

// adoptVersionOne prepares the pins of a file of version 1. What is derived from a tool's bytes is derived anew when it is seen, and
// kept definitions get the present form, by which a change is shown.
func (b pinsByServer) adoptVersionOne() {
	for _, k := range b {
		for _, p := range k {
			p.Seen, p.Means = "", ""
			for _, d := range []*Definition{p.Old, p.New} {
				if d != nil {
					d.InputSchema, d.OutputSchema, d.Rest = canonicalJSON(d.InputSchema), canonicalJSON(d.OutputSchema), canonicalJSON(d.Rest)
				}
			}
		}
	}
}

// replaceVersionOne puts a hash in the place of the one of version 1 that the same definition had, if the pin has that. old computes
// the latter.
func (p *pin) replaceVersionOne(hash string, old func() string) (changed bool) {
	isOld := func(h string) bool { return h != "" && !strings.HasPrefix(h, hashPrefix) }
	if !slices.ContainsFunc(p.Approved, isOld) && !isOld(p.Now) && !isOld(p.Shown) {
		return false
	}
	was := old()
	if was == "" {
		return false
	}
	for i := range p.Approved {
		if p.Approved[i] == was {
			p.Approved[i], changed = hash, true
		}
	}
	for _, h := range []*string{&p.Now, &p.Shown} {
		if *h == was {
			*h, changed = hash, true
		}
	}
	return changed
}

// versionOneHash returns the hash that version 1 had of a tool's definition.
func versionOneHash(t *messages.Tool) string {
	b, err := json.Marshal(struct {
		Title        string                      `json:"title,omitempty"`
		Description  string                      `json:"description,omitempty"`
		InputSchema  json.RawMessage             `json:"inputSchema,omitempty"`
		OutputSchema json.RawMessage             `json:"outputSchema,omitempty"`
		Annotations  *messages.StatusAnnotations `json:"annotations,omitempty"`
		Rest         json.RawMessage             `json:"rest,omitempty"`
	}{t.Title, t.Description, versionOneForm(t.InputSchema), versionOneForm(t.OutputSchema),
		(*messages.StatusAnnotations)(t.Annotations), otherMembers(t, versionOneForm)})
	if err != nil {
		return ""
	}
	return hexSum(b)
}

// versionOneForm returns the form of a part. A text with a doubled name, and one that is no JSON, was kept whole, as a string.
func versionOneForm(raw json.RawMessage) json.RawMessage {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	if rawjson.CheckDoubled(raw) == nil {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var v any
		if d.Decode(&v) == nil {
			if b, err := json.Marshal(v); err == nil {
				return b
			}
		}
	}
	b, _ := json.Marshal(string(raw)) // a text always encodes
	return b
}

// versionOneDigest returns the digest that version 1 had of the tools beyond the limit.
func versionOneDigest(tools []*messages.Tool) string {
	var over []string
	for _, t := range tools {
		over = append(over, t.Name+"\x00"+versionOneHash(t))
	}
	return toolsDigest(over)
}
