package approve

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/project"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/schema"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// Screen is the text that a person reads before an entry of another person starts: the whole entry as it is written,
// and what follows from it. The person approves exactly what stands there, so that nothing in it is cut.
type Screen struct {
	// Title is the name of the server, Source the file and scope of the entry; empty for one that is not in a file yet.
	Title, Source string
	// Review holds the remarks about Entry, which is shown as its author wrote it.
	Review config.Review
	Entry  json.RawMessage
	// reason says why it is shown; empty if the person asked for it.
	reason string
	// Mask returns what stands in the place of a text that the person typed; nil masks nothing.
	Mask func(path, text string) (string, bool)
	// hash identifies what would be approved; empty if no approval is stored.
	hash string
}

// ScreenOf returns the screen of a server of the setup; ok is false if it needs no approval.
func ScreenOf(s *project.Setup, name string) (Screen, bool) {
	c, ok := discover.ApprovalCandidate(s.Set, name)
	if !ok {
		return Screen{}, false
	}
	v := Screen{Title: name, Source: c.Binding.Path + " (" + string(c.Spec.Scope) + ")", Review: reviewOf(s, c),
		Entry: c.Binding.Entry, hash: c.Binding.Hash()}
	if stale := s.Stale[name]; len(stale) > 0 {
		v.reason = strings.Join(stale, "; ")
	} else if hold := s.Specs[name].Hold; hold != "" {
		v.reason, _, _ = strings.Cut(hold, "; look at ")
	}
	return v, true
}

// PrintTo writes the screen. A line that deserves a look begins with an exclamation mark. A line that is longer than the
// terminal continues after ↩ on the next one.
func (v Screen) PrintTo(w io.Writer) {
	remarks := v.Review.Remarks(v.Entry)
	// The remarks name the keys that are dangerous, and the same keys are marked in the entry below.
	marked := map[string]bool{}
	line := func(danger bool, indent, s string) {
		sign := "  "
		if danger {
			sign = "! "
		}
		// Three columns are for the sign and for ↩, so that the terminal itself never wraps.
		for i, part := range wrapLine(s, terminal.ColumnsOf(w)-len(indent)-3) {
			if i > 0 {
				sign = "  "
			}
			if danger {
				part = terminal.PaintText(w, text.Colors{text.FgRed}, part)
			}
			fmt.Fprintln(w, strings.TrimRight(sign+indent+part, " "))
		}
	}
	head := config.Visible(v.Title)
	if v.Source != "" {
		head += "  from " + config.Visible(v.Source)
	}
	fmt.Fprintln(w, head)
	if v.reason != "" {
		line(false, "", messages.Line(v.reason, 0))
	}
	for _, r := range remarks {
		if r.Danger {
			for _, key := range r.Keys {
				marked[key] = true
			}
		}
		line(r.Danger, "", v.maskText(r.Text))
	}
	line(false, "", "as it is written:")
	for _, l := range config.ShowEntry(v.Entry, marked, v.Mask) {
		line(l.Marked, "  ", l.Text)
	}
}

// maskText returns a remark with the texts masked that the person typed.
func (v Screen) maskText(s string) string {
	if v.Mask == nil {
		return s
	}
	if m, ok := v.Mask("", s); ok {
		return m
	}
	return s
}

// wrapLine splits a line into parts of at most columns letters; each but the last ends with ↩. Fewer than 20 columns, or a
// width that is not known, leave it whole.
func wrapLine(s string, columns int) []string {
	r := []rune(s)
	if columns < 20 {
		return []string{s}
	}
	var parts []string
	for len(r) > columns {
		parts = append(parts, string(r[:columns])+"↩")
		r = r[columns:]
	}
	return append(parts, string(r))
}

// approvalJSON is the JSON form of a screen. Hash is the value for approve --hash.
type approvalJSON struct {
	Hash    string          `json:"hash,omitempty"`
	Object  *config.Binding `json:"object,omitempty"`
	Remarks []config.Remark `json:"remarks,omitempty"`
}

// reviewOf returns what an entry does, and which other users of this machine can change its files.
func reviewOf(s *project.Setup, c config.Candidate) config.Review {
	v := config.ReviewOf(s.Set, c)
	v.Shared = discover.SharedWith(*c.Binding)
	return v
}

// approvalJSONOf returns the JSON form of a server's screen; empty if it needs no approval.
func approvalJSONOf(s *project.Setup, name string) (out approvalJSON) {
	if c, ok := discover.ApprovalCandidate(s.Set, name); ok {
		out = approvalJSON{c.Binding.Hash(), c.Binding, reviewOf(s, c).Remarks(c.Binding.Entry)}
	}
	return out
}

// MaskTyped returns a mask that hides what the person typed wherever it stands. Words of fewer than four bytes are not hidden,
// because they would hide parts of other words as well; references to variables are no secrets.
func MaskTyped(typed []string) func(path, text string) (string, bool) {
	typed = slices.DeleteFunc(slices.Clone(typed), func(s string) bool { return len(s) < 4 || strings.HasPrefix(s, "${") })
	if len(typed) == 0 {
		return nil
	}
	// The longest is replaced first, since a shorter one may be a part of it.
	slices.SortFunc(typed, func(a, b string) int { return len(b) - len(a) })
	return func(path, s string) (string, bool) {
		hidden := false
		for _, t := range typed {
			for _, form := range []string{t, config.Visible(t)} {
				if strings.Contains(s, form) {
					s, hidden = strings.ReplaceAll(s, form, "[what you typed]"), true
				}
			}
		}
		if path != "" {
			s = `"` + s + `"`
		}
		return s, hidden
	}
}

// EntryText returns a spec as the JSON of an entry, without a type that follows from the other keys, as a person would write
// it.
func EntryText(s messages.Spec) json.RawMessage {
	switch {
	case s.Type == messages.Stdio && s.Command != "", s.Type == messages.HTTP && s.FallbackSSE:
		s.Type, s.FallbackSSE = "", false
	}
	return schema.EncodeJSON(s)
}
