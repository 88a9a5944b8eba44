package plan

import (
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// resolveSettings returns the values of the bundle's own settings in the order of their keys, and asks for required
// ones. Settings without a value have no entry.
func (f *resolver) resolveSettings(all map[string]setting, m Machine) (map[string][]mixedText, error) {
	out := map[string][]mixedText{}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		s := all[key]
		in := Input{Kind: Setting, Name: key, Description: s.Description, Secret: s.Sensitive, Repeated: s.Multiple}
		// The title says at least something to the person.
		if in.Description == "" {
			in.Description = s.Title
		}
		// Manifests have other words for the formats.
		switch s.Type {
		case "number", "boolean":
			in.Format = s.Type
		case "file", "directory":
			in.Format = "filepath"
		}
		presets, err := settingDefaults(s.Default, m)
		if err != nil {
			return nil, planError(ErrDocument, "the default of the bundle's setting "+shortText(key)+" cannot be read", "")
		}
		if len(presets) == 1 {
			in.Default, in.HasDefault = presets[0], true
		}
		// An Input has one default only, so that a list of defaults is taken without a question.
		if len(presets) > 1 && f.givenValues(in) == nil {
			for _, p := range presets {
				out[key] = append(out[key], publishedText(p))
			}
			continue
		}
		values, err := f.chosenValues(in, s.Required)
		if err != nil {
			return nil, err
		}
		if len(values) > 0 {
			out[key] = values
		}
	}
	return out, nil
}

// settingDefaults returns the default of one setting: a text, a number, a truth value or a list of them, with
// directories filled in.
func settingDefaults(raw json.RawMessage, m Machine) ([]string, error) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	// Numbers and truth values become text, as they are used in arguments and variables.
	var list []Text
	if raw[0] == '[' {
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, err
		}
	} else {
		list = make([]Text, 1)
		if err := json.Unmarshal(raw, &list[0]); err != nil {
			return nil, err
		}
	}
	var out []string
	for _, t := range list {
		// An empty default means none.
		if t != "" {
			out = append(out, dirReplacer(m.Home).Replace(string(t)))
		}
	}
	return out, nil
}

// dirReplacer replaces the directories that a manifest may name.
func dirReplacer(home string) *strings.Replacer {
	return strings.NewReplacer("${HOME}", home, "${DESKTOP}", filepath.Join(home, "Desktop"),
		"${DOCUMENTS}", filepath.Join(home, "Documents"), "${DOWNLOADS}", filepath.Join(home, "Downloads"))
}

// expander substitutes values in the texts of a manifest.
type expander struct {
	// dir is the directory of the bundle, home the person's, and separator that of the platform's paths.
	dir, home, separator string
	// settings holds the values, known all settings that the manifest declares.
	settings map[string][]mixedText
	known    map[string]setting
}

// userConfig begins the name of a setting in ${user_config.KEY}.
const userConfig = "user_config."

// expandText returns a text with its variables substituted. present is false if one of them is an optional setting
// without a value; the whole text is then left out. An unknown variable is an error, because "${" must not reach the
// entry.
func (e expander) expandText(text string) (w mixedText, present bool, err error) {
	present = true
	for {
		before, rest, found := strings.Cut(text, reference)
		if !found {
			return append(w, textPiece{text: text}), present, nil
		}
		name, after, closed := strings.Cut(rest, "}")
		if !closed {
			return nil, false, planError(ErrUnusable, `a text of the bundle's manifest holds "${" that is not closed`, "")
		}
		w = append(w, textPiece{text: before})
		key, isSetting := strings.CutPrefix(name, userConfig)
		switch {
		case name == "__dirname":
			w = append(w, textPiece{text: e.dir})
		case name == "pathSeparator", name == "/":
			w = append(w, textPiece{text: e.separator})
		case isSetting && e.settings[key] != nil:
			// Inside a longer text, several values are joined with commas.
			for i, v := range e.settings[key] {
				if i > 0 {
					w = append(w, textPiece{text: ","})
				}
				w = append(w, v...)
			}
		// The setting exists, is optional and has no value.
		case isSetting && e.hasSetting(key):
			present = false
		// The directories of the person are replaced by a table of their own.
		default:
			whole := reference + name + "}"
			replaced := dirReplacer(e.home).Replace(whole)
			if replaced == whole {
				return nil, false, planError(ErrUnusable, "the bundle's manifest wants "+shortText(whole)+", which is none of its settings", "")
			}
			w = append(w, textPiece{text: replaced})
		}
		text = after
	}
}

func (e expander) hasSetting(key string) bool { _, ok := e.known[key]; return ok }

// expandArgument returns the words of one argument: none for an optional setting without a value, and one for each
// value of a setting that is the whole argument.
func (e expander) expandArgument(text string) ([]mixedText, error) {
	key, begins := strings.CutPrefix(text, reference+userConfig)
	// Only an argument that consists of the setting becomes several words.
	if key, whole := strings.CutSuffix(key, "}"); begins && whole && !strings.Contains(key, reference) && e.hasSetting(key) {
		return e.settings[key], nil
	}
	w, present, err := e.expandText(text)
	if err != nil || !present {
		return nil, err
	}
	return []mixedText{w}, nil
}
