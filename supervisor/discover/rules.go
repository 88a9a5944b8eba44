package discover

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
)

// AddRule writes a rule into a file, under permissions. The rest of the file stays, comments included; a missing file
// is created. A rule that stands there already is not written again. The error is a *messages.Error.
func AddRule(path string, verdict access.Verdict, rule string) error {
	if _, err := access.Parse(verdict, rule); err != nil {
		return &messages.Error{Op: "permissions", Class: messages.ClassInvalid, Text: err.Error(), Err: err}
	}
	_, err := AddRules(path, []access.Rule{{Verdict: verdict, Text: rule}}, "")
	return err
}

// AddRules writes several rules at once, as AddRule does; the caller has parsed them. If the file has no default, a
// fallback that is not empty becomes it. effective is the default that the file has afterwards.
func AddRules(path string, rules []access.Rule, fallback access.Verdict) (effective access.Verdict, err error) {
	err = editRules(path, func(now permissionLists) (all []jsonPatch) {
		if effective = now.def; effective == "" && fallback != "" {
			effective = fallback
			all = append(all, jsonPatch{"add", "/permissions/default", string(fallback)})
		}
		for _, rule := range rules {
			list, exists := now.lists[rule.Verdict]
			if slices.Contains(list, rule.Text) {
				continue
			}
			// RFC 6902 adds to the end of a list by "-", and needs the list to exist.
			if !exists {
				all = append(all, jsonPatch{"add", "/permissions/" + string(rule.Verdict), []string{rule.Text}})
			} else {
				all = append(all, jsonPatch{"add", "/permissions/" + string(rule.Verdict) + "/-", rule.Text})
			}
			// A later rule of the same call finds the list, and is not written twice.
			now.lists[rule.Verdict] = append(list, rule.Text)
		}
		return all
	})
	return effective, err
}

// permissionLists holds the value of permissions in a file: the rules by verdict, and the default.
type permissionLists struct {
	lists map[access.Verdict][]string
	def   access.Verdict
}

// RemoveRules removes rules from every list of a file by one edit, so that an error leaves all of them. removed has those that
// the file held, each once, in the order of rules.
func RemoveRules(path string, rules []string) (removed []string, err error) {
	err = editRules(path, func(now permissionLists) (all []jsonPatch) {
		held := map[string]bool{}
		for _, verdict := range []access.Verdict{access.Allow, access.Ask, access.Deny} {
			// Patches are applied in order, so that removing from the end keeps the other indexes valid.
			for i, r := range slices.Backward(now.lists[verdict]) {
				if slices.Contains(rules, r) {
					all = append(all, jsonPatch{"remove", "/permissions/" + string(verdict) + "/" + itoa(i), nil})
					held[r] = true
				}
			}
		}
		removed = nil
		for _, r := range rules {
			if held[r] && !slices.Contains(removed, r) {
				removed = append(removed, r)
			}
		}
		return all
	})
	if err != nil {
		return nil, err
	}
	return removed, nil
}

// itoa returns a number in digits. Encoding a number cannot fail.
func itoa(i int) string { b, _ := json.Marshal(i); return string(b) }

// jsonPatch is one operation of RFC 6902. hujson applies it to the text and keeps comments and form.
type jsonPatch struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// editRules changes the rules of a file by the patches that edit returns. Edit may call it several times, so that edit
// must not count on the first call.
func editRules(path string, edit func(permissionLists) []jsonPatch) error {
	fail := func(text, fix string, err error) error {
		return &messages.Error{Op: "permissions", Class: messages.ClassConfig,
			Text: "the rule cannot be written to " + messages.Line(path, 0) + ": " + text, Fix: fix, Err: err}
	}
	if path == "" {
		return fail("there is no place for a file of your own", "set HOME", nil)
	}
	err := Edit(path, func(text []byte) ([]byte, error) {
		if len(bytes.TrimSpace(text)) > 0 {
			return changeRules(text, edit, fail)
		}
		// An empty file becomes an object first.
		created, err := changeRules([]byte(emptyObject), edit, fail)
		// No patch for a missing file must not create it.
		if string(created) == emptyObject {
			return nil, err
		}
		return created, err
	})
	var msgErr *messages.Error
	if err != nil && !errors.As(err, &msgErr) {
		return fail(fileErrorText(err), "", err)
	}
	return err
}

// emptyObject is the text that a new file begins with.
const emptyObject = "{}\n"

// changeRules returns the text of a file with other rules; fail makes its errors. It refuses text whose present
// permissions it cannot read, so that no rule is written where it would not count.
func changeRules(text []byte, edit func(permissionLists) []jsonPatch,
	fail func(text, fix string, err error) error,
) ([]byte, error) {
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, fail("it is no JSON", "mend it first: mcpvisor config check", err)
	}
	// The copy loses its comments, so that encoding/json can read it; the patch works on the original.
	plain := root.Clone()
	plain.Standardize()
	var file map[string]json.RawMessage
	now := permissionLists{lists: map[access.Verdict][]string{}}
	if json.Unmarshal(plain.Pack(), &file) != nil || file == nil {
		return nil, fail("it is no JSON object", "mend it first: mcpvisor config check", nil)
	}
	var all []jsonPatch
	// The patches of the rules need the object around them.
	if raw, ok := file["permissions"]; !ok {
		all = append(all, jsonPatch{"add", "/permissions", map[string]any{}})
	} else if json.Unmarshal(raw, &struct {
		Allow, Ask, Deny *[]string
	}{}) != nil {
		return nil, fail("its permissions cannot be read", "mend them first: mcpvisor config check", nil)
	} else {
		var members map[access.Verdict]json.RawMessage
		if json.Unmarshal(raw, &members) != nil {
			return nil, fail("its permissions are no object", "mend them first: mcpvisor config check", nil)
		}
		// The default is missing, or no text. What stands there is kept, so that no fallback replaces it.
		if json.Unmarshal(members["default"], &now.def) != nil {
			now.def = access.Verdict(strings.Trim(string(members["default"]), `"`))
		}
		for _, v := range []access.Verdict{access.Allow, access.Ask, access.Deny} {
			var list []string
			if raw, ok := members[v]; ok && json.Unmarshal(raw, &list) == nil && list != nil {
				now.lists[v] = list
			}
		}
	}
	added := edit(now)
	if len(added) == 0 {
		return text, nil
	}
	ops, err := json.Marshal(append(all, added...))
	if err == nil {
		err = root.Patch(ops)
	}
	if err != nil {
		return nil, fail("it cannot be changed", "write the rule by hand", err)
	}
	// An empty file has no form yet, and gets the usual one.
	if len(text) < 4 {
		root.Format()
	}
	return root.Pack(), nil
}
