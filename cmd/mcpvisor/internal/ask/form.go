package ask

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/schema"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
)

// fillForm holds the conversation about a form: which server asks what, each field, and a summary before it is sent. before
// holds values that the person gave beforehand for some fields.
//
// 2025-11-25, Elicitation: "Clients SHOULD: Provide clear indication of which server is requesting information; Allow
// users to review and modify their responses before sending; … decline and cancel options".
func (t *Conversation) fillForm(r messages.ElicitRequest, before map[string]json.RawMessage) (messages.ElicitResult, error) {
	decline := messages.ElicitResult{Action: messages.ElicitDecline}
	fields, err := fieldsOf(r.Schema)
	t.Print("\nThe server %q asks you:\n", messages.Line(r.Server, 60))
	t.printPassage(r.Message)
	// A form that cannot be read is shown all the same, because the person should know that the server asked.
	if err != nil {
		t.Print("  It cannot be answered, because %s.\n", err)
		return messages.ElicitResult{Action: messages.ElicitCancel}, nil
	}
	if len(fields) == 0 { // the server only wants an agreement
		switch word, err := t.ChooseWord("[y]es, [d]ecline or [c]ancel?", "yes", "decline", "cancel"); {
		case err != nil || word == "cancel":
			return messages.ElicitResult{Action: messages.ElicitCancel}, err
		case word == "decline":
			return decline, nil
		}
		return messages.ElicitResult{Action: messages.ElicitAccept, Content: json.RawMessage("{}")}, nil
	}
	t.Print("  It has %s.\n", terminal.CountOf(len(fields), "field"))
	word, err := t.ChooseWord("[a]nswer, [d]ecline or [c]ancel? (Ctrl-C cancels at any time)", "answer", "decline", "cancel")
	// Each round asks for all fields, with the values of the round before as defaults, until the person sends, declines or
	// cancels.
	values := before
	for {
		switch {
		case err != nil || word == "cancel":
			return messages.ElicitResult{Action: messages.ElicitCancel}, err
		case word == "decline":
			return decline, nil
		case word == "send":
			return messages.ElicitResult{Action: messages.ElicitAccept, Content: encodeFields(fields, values)}, nil
		}
		if values, err = t.fillFields(fields, values); err != nil {
			return messages.ElicitResult{Action: messages.ElicitCancel}, err
		}
		t.Print("\nThis is what %q gets:\n", messages.Line(r.Server, 60))
		for i := range fields {
			text := "(left out)"
			if v, ok := values[fields[i].name]; ok {
				text = fields[i].fullText(v)
			}
			t.Print("  %s: %s\n", fields[i].label(), text)
		}
		word, err = t.ChooseWord("[s]end it, [e]dit it, [d]ecline or [c]ancel?", "send", "edit", "decline", "cancel")
	}
}

// maxPreset is the greatest length, in bytes, of a default of the server that is offered: the person must see all of what is
// sent.
const maxPreset = 2000

// fillFields asks for each field and returns the new values. An empty line keeps the value that the field had before, or takes
// the server's default if it fits the schema and is short enough to be shown.
func (t *Conversation) fillFields(fields []formField, before map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	values := map[string]json.RawMessage{}
	for i := range fields {
		f := &fields[i]
		had, ok := before[f.name]
		if !ok || f.checkValue(had) != nil {
			had = nil
		}
		if had == nil && len(f.preset) > 0 && len(f.preset) <= maxPreset && f.checkValue(f.preset) == nil {
			had = f.preset
		}
		t.Print("\nfield %d of %d: %s: %s\n", i+1, len(fields), f.label(), f.inputHint())
		v, err := t.askField(f, had)
		if err != nil {
			return nil, err
		}
		if v != nil {
			values[f.name] = v
		}
	}
	return values, nil
}

// askField asks for one field until the answer fits; nil leaves the field out. had, if not nil, is the value that an empty line
// means. The prompt always shows what an empty line does.
func (t *Conversation) askField(f *formField, had json.RawMessage) (json.RawMessage, error) {
	if f.description != "" {
		t.PrintQuoted(messages.Line(f.description, 400))
	}
	t.listChoices(f, "")
	prompt := "> "
	switch {
	case had != nil:
		prompt = "[" + f.shortText(had) + "] > "
		if f.isOptional() {
			prompt = "[" + f.shortText(had) + ", - leaves it out] > "
		}
	case !f.required:
		prompt = "[left out] > "
	}
	for {
		typed, err := t.readLine(prompt)
		switch {
		case err != nil:
			return nil, err
		case typed == "" && had != nil:
			return had, nil
		case typed == "" && f.required:
			t.Print("  An answer is required.\n")
			continue
		case typed == "" || typed == "-" && had != nil && f.isOptional():
			return nil, nil
		}
		v, err := f.parseInput(typed)
		if err == nil {
			return v, nil
		}
		// "?" searches in a long list of choices, but only if it is not itself a valid answer.
		if part, ok := strings.CutPrefix(typed, "?"); ok && len(f.choices) > shownChoices {
			t.listChoices(f, strings.TrimSpace(part))
			continue
		}
		t.Print("  %s.\n", errorSentence(err))
	}
}

// shownChoices bounds the choices of a field that are listed at once; servers may send thousands.
const shownChoices = 50

// listChoices shows the choices of a field that contain part in any case, and says how many it did not show.
func (t *Conversation) listChoices(f *formField, part string) {
	shown, found := 0, 0
	for i, c := range f.choices {
		if !strings.Contains(strings.ToLower(c.title+"\n"+c.value), strings.ToLower(part)) {
			continue
		}
		if found++; shown == shownChoices {
			continue
		}
		shown++
		if f.acceptsNumbers() {
			t.Print("  %3d  %s\n", i+1, c)
		} else {
			t.Print("       %s\n", c)
		}
	}
	switch {
	case found > shown:
		t.Print("  These are %d of %s choices: ? and a part of one shows those that hold it.\n", shown, withCommas(found))
	case found == 0 && part != "":
		t.Print("  No choice holds that.\n")
	}
}

// isOptional reports whether the field may be left out. Its default is not sent then.
func (f *formField) isOptional() bool { return !f.required }

// errorSentence returns an error with a capital letter, without a full stop, cut to 300 runes.
func errorSentence(err error) string {
	text := messages.Line(err.Error(), 300)
	if text == "" {
		return "It does not fit"
	}
	return string(bytes.ToUpper([]byte(text[:1]))) + text[1:]
}

// encodeFields returns the JSON object of the values, in the order of the fields.
func encodeFields(fields []formField, values map[string]json.RawMessage) json.RawMessage {
	b := []byte{'{'}
	for i := range fields {
		v, ok := values[fields[i].name]
		if !ok {
			continue
		}
		if len(b) > 1 {
			b = append(b, ',')
		}
		b = append(append(b, schema.EncodeJSON(fields[i].name)...), ':')
		b = append(b, v...)
	}
	return append(b, '}')
}
