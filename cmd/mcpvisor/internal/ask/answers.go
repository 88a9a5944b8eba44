package ask

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/schema"
	"github.com/mcpvisor/mcpvisor/messages"
)

// presetAnswers holds what a person has written into the file of --answers for the questions of servers. The key is the name of
// a server, or "*" for all.
type presetAnswers map[string]presetAnswer

// presetAnswer answers the questions of one server: with one action for all of them (accept, decline or cancel), or with values
// by field name. Exactly one of the two is set.
type presetAnswer struct {
	action string
	fields map[string]json.RawMessage
}

// readAnswers reads the file of --answers. Every error is a usage error that shows the expected form and quotes no value.
func readAnswers(path string) (presetAnswers, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		reason := err.Error()
		if errors.Is(err, os.ErrNotExist) {
			reason = "there is no such file"
		}
		return nil, exit.With(exit.Usage, fmt.Sprintf("--answers: %q: %s", messages.Line(path, 200), reason))
	}
	var raw map[string]json.RawMessage
	bad := func(what string) error {
		return exit.With(exit.Usage, fmt.Sprintf(`--answers: %q: %s; write {"SERVER": {"FIELD": value}}, or "decline" `+
			`in place of the fields`, messages.Line(path, 200), what))
	}
	if json.Unmarshal(text, &raw) != nil || raw == nil {
		if !json.Valid(text) {
			return nil, bad("it is no JSON: " + schema.JSONProblem(text))
		}
		return nil, bad("it is no JSON object")
	}
	out := presetAnswers{}
	for server, v := range raw {
		var a presetAnswer
		if json.Unmarshal(v, &a.action) == nil {
			if !slices.Contains([]string{messages.ElicitAccept, messages.ElicitDecline, messages.ElicitCancel}, a.action) {
				return nil, bad(fmt.Sprintf("%q is no answer", messages.Line(a.action, 60)))
			}
		} else if json.Unmarshal(v, &a.fields) != nil || a.fields == nil {
			return nil, bad(fmt.Sprintf("what stands for server %q is no object", messages.Line(server, 60)))
		}
		out[server] = a
	}
	return out, nil
}

// fieldsFor returns the values for a server's forms. A value for the server itself wins over one for "*".
func (a presetAnswers) fieldsFor(server string) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	for _, name := range []string{"*", server} {
		for field, v := range a[name].fields {
			out[field] = v
		}
	}
	return out
}

// answerTo answers a question from the file. missing says what the file lacks, and is empty if res is the answer. A form is
// answered only if all its required fields have values that fit its schema.
func (a presetAnswers) answerTo(r messages.ElicitRequest) (res messages.ElicitResult, missing string) {
	if a == nil {
		return res, "there is no terminal to ask at, and no --answers"
	}
	given, ok := a[r.Server]
	if !ok {
		given, ok = a["*"]
	}
	switch {
	case !ok:
		return res, "--answers has nothing for this server"
	case given.action == messages.ElicitDecline || given.action == messages.ElicitCancel:
		return messages.ElicitResult{Action: given.action}, ""
	// Opening a page needs an explicit "accept": fields say nothing about pages.
	case r.Mode == messages.ElicitURL && given.action != messages.ElicitAccept:
		return res, `it asks for a page to be opened; write "accept" for this server in --answers to agree`
	case r.Mode == messages.ElicitURL:
		return messages.ElicitResult{Action: messages.ElicitAccept}, ""
	}
	fields, err := fieldsOf(r.Schema)
	if err != nil {
		return res, err.Error()
	}
	all, values := a.fieldsFor(r.Server), map[string]json.RawMessage{}
	for i := range fields {
		f := &fields[i]
		v, there := all[f.name]
		switch {
		case there:
			if err := f.checkValue(v); err != nil {
				return res, fmt.Sprintf("the answer for %q does not fit: %s", messages.Line(f.name, 60), err)
			}
			values[f.name] = v
		case f.required: // the default in the schema is the server's, and nothing that the person has said
			return res, fmt.Sprintf("--answers has nothing for %q (%s)", messages.Line(f.name, 60), f.inputHint())
		}
	}
	return messages.ElicitResult{Action: messages.ElicitAccept, Content: encodeFields(fields, values)}, ""
}

// answeredText says on standard error what was answered. It names fields without their values, because they may be secrets and
// standard error may be a log.
func answeredText(r messages.ElicitRequest, res messages.ElicitResult) string {
	asked := messages.Line(r.Message, 80)
	switch {
	case r.Mode == messages.ElicitURL && res.Action == messages.ElicitAccept:
		return fmt.Sprintf("it asked for a page to be opened (%s), which --answers agrees to; open it yourself: %s", asked,
			messages.Line(r.URL, 0))
	case res.Action == messages.ElicitAccept:
		var given map[string]json.RawMessage
		_ = json.Unmarshal(res.Content, &given) // encodeFields wrote this object a moment ago
		var names []string
		for _, name := range slices.Sorted(maps.Keys(given)) {
			names = append(names, messages.Line(name, 40))
		}
		return fmt.Sprintf("its question (%s) is answered from --answers: %s", asked, strings.Join(names, ", "))
	}
	return fmt.Sprintf("its question (%s) is answered from --answers: %s", asked, res.Action)
}
