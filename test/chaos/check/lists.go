package check

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mcpvisor/mcpvisor/messages"
)

// toolEntry is one tool as it stands in the list.
// Only what the checks compare is kept; the session judges in s.tools whether a definition can be used.
type toolEntry struct {
	// definition is the whole definition in canonical form, required the number of required arguments, schema whether there is
	// an input schema.
	name, definition string
	readOnly         bool
	required         int
	schema           bool
}

// maxPages bounds the reading of a list that does not end.
const maxPages = 200

// listReading is the result of reading the list once.
type listReading struct {
	entries []toolEntry
	pages   int
	// problem says why the list could not be read to its end, empty if it could. loops is set if its pages do not end.
	problem string
	loops   bool
}

// readToolList reads all pages of tools/list. An empty cursor is a cursor like any other; only a missing one ends the list.
func (s *serverCheck) readToolList(ctx context.Context, c *rawClient) listReading {
	var l listReading
	var cursor *string
	seen := map[string]bool{}
	for l.pages < maxPages {
		params := map[string]any{}
		if cursor != nil {
			params["cursor"] = *cursor
		}
		r, err := c.callMethod(ctx, s.o.Answer, "tools/list", params)
		if err != nil {
			l.problem = "it " + failureText(err)
			return l
		}
		if r.Error != nil {
			l.problem = fmt.Sprintf("it answered with error %d: %s", r.Error.Code, messages.Line(r.Error.Message, 100))
			return l
		}
		var page struct {
			Tools      []json.RawMessage `json:"tools"`
			NextCursor *string           `json:"nextCursor"`
		}
		if err := json.Unmarshal(r.Result, &page); err != nil {
			l.problem = "its answer holds no list of tools"
			return l
		}
		l.pages++
		for _, raw := range page.Tools {
			l.entries = append(l.entries, entryOf(raw))
		}
		if page.NextCursor == nil {
			return l
		}
		// A server may restart its numbering of cursors between lists, and never within one.
		if seen[*page.NextCursor] {
			l.problem, l.loops = "a page repeats the cursor of a page before: whoever follows it never ends", true
			return l
		}
		seen[*page.NextCursor] = true
		cursor = page.NextCursor
	}
	l.problem, l.loops = fmt.Sprintf("there is always another page: it was given up after %d", maxPages), true
	return l
}

// entryOf reads one definition. An unreadable one keeps its bytes, so that two readings can still be compared.
func entryOf(raw json.RawMessage) toolEntry {
	var t struct {
		Name        string `json:"name"`
		Annotations struct {
			ReadOnlyHint bool `json:"readOnlyHint"`
		} `json:"annotations"`
		InputSchema *struct {
			Required []string `json:"required"`
		} `json:"inputSchema"`
	}
	// s.tools judges what cannot be read.
	_ = json.Unmarshal(raw, &t)
	e := toolEntry{name: t.Name, definition: canonicalJSON(raw), readOnly: t.Annotations.ReadOnlyHint}
	if t.InputSchema != nil {
		e.schema, e.required = true, len(t.InputSchema.Required)
	}
	return e
}

// canonicalJSON sorts the members of a definition, so that two readings can be compared.
func canonicalJSON(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	b, err := json.Marshal(v)
	// The value was just decoded from JSON, so Marshal cannot fail.
	if err != nil {
		return string(raw)
	}
	return string(b)
}

// checkLists reads the list twice on one connection, and judges its contents.
func (s *serverCheck) checkLists(ctx context.Context) {
	s.runShared(ctx, "list", s.listTwice)
}

// listTwice reads the list twice and compares the readings. A server without tools may answer -32601.
func (s *serverCheck) listTwice(ctx context.Context, c *rawClient) {
	one := s.readToolList(ctx, c)
	s.first = one.entries
	s.judgePages(one)
	s.judgeDefinitions()
	if one.problem != "" && !one.loops {
		if len(s.tools.Tools) == 0 && strings.Contains(one.problem, "-32601") {
			s.addFinding("list", Pass, "it offers no tools", "")
			return
		}
		s.addFinding("list", Fail, "tools/list cannot be read: "+one.problem, "")
		return
	}
	// Both readings are on one connection without a call between them, so that a difference is the server's own.
	two := s.readToolList(ctx, c)
	if text := diffText(one.entries, two.entries); text != "" {
		s.addFinding("list", Warn, "tools/list differs when it is asked twice: "+text,
			"keep one order, and announce changes with notifications/tools/list_changed: a model's cached prompt is lost "+
				"with each change")
		return
	}
	s.addFinding("list", Pass, fmt.Sprintf("tools/list is the same when it is asked twice: %s", pluralText(len(one.entries), "tool")), "",
		"tools", len(one.entries))
}

// judgePages judges whether the pages of the list end.
func (s *serverCheck) judgePages(l listReading) {
	switch {
	case l.loops:
		s.addFinding("pages", Fail, "the pages of tools/list do not end: "+l.problem, "leave nextCursor out of the last page")
	case l.pages > 1:
		s.addFinding("pages", Pass, fmt.Sprintf("tools/list has %d pages: some clients show only the first", l.pages), "")
	}
}

// diffText describes how two readings differ, empty if they are equal.
func diffText(a, b []toolEntry) string {
	key := func(e toolEntry) string { return e.definition }
	x, y := entryKeys(a, key), entryKeys(b, key)
	if slices.Equal(x, y) {
		return ""
	}
	// Equal sets in another order are told apart from changes: the order alone costs a model's cached prompt.
	slices.Sort(x)
	slices.Sort(y)
	if slices.Equal(x, y) {
		return "another order"
	}
	name := func(e toolEntry) string { return e.name }
	gone, come := missingFrom(entryKeys(a, name), entryKeys(b, name)), missingFrom(entryKeys(b, name), entryKeys(a, name))
	switch {
	case len(gone)+len(come) == 0:
		return "the definition of a tool is another one"
	case len(come) == 0:
		return "without " + firstFew(gone)
	case len(gone) == 0:
		return "with " + firstFew(come) + " more"
	}
	return "with " + firstFew(come) + ", without " + firstFew(gone)
}

// entryKeys returns one text per entry.
func entryKeys(all []toolEntry, key func(toolEntry) string) []string {
	out := make([]string, len(all))
	for i, e := range all {
		out[i] = key(e)
	}
	return out
}

// missingFrom returns the texts of all that minus lacks, each once.
func missingFrom(all, minus []string) (out []string) {
	for _, n := range all {
		if !slices.Contains(minus, n) && !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// judgeDefinitions judges names and schemas: duplicates and unusable tools fail, names that models do not take are a warning.
func (s *serverCheck) judgeDefinitions() {
	// problems break a client and make the finding Fail; odd ones cost clients a renaming and make it Warn.
	var problems, odd []string
	var fixes []string
	seen := map[string]bool{}
	var twice, long, strange []string
	for _, e := range s.first {
		if seen[e.name] && !slices.Contains(twice, e.name) {
			twice = append(twice, e.name)
		}
		seen[e.name] = true
		// Agents offer tools under this long name, so its length counts, not that of the tool's own name.
		if n := utf8.RuneCountInString(fmt.Sprintf("mcp__%s__%s", s.name, e.name)); n > messages.DefaultNameLimit {
			long = append(long, e.name)
		}
		if strings.ContainsFunc(e.name, noModelTakes) {
			strange = append(strange, strconv.Quote(messages.Line(e.name, 60)))
		}
	}
	if len(twice) > 0 {
		problems = append(problems, "listed more than once: "+firstFew(twice))
		fixes = append(fixes, "give each tool a name of its own")
	}
	var refused []string
	for _, q := range s.tools.Quarantined {
		// The session quarantines duplicates, too; they are named above already.
		if !slices.Contains(twice, q.Name) {
			refused = append(refused, fmt.Sprintf("%s (%s)", messages.Line(q.Name, 40), messages.Line(q.Reason, 120)))
		}
	}
	if len(refused) > 0 {
		problems = append(problems, fmt.Sprintf("%s cannot be used and would be held back: %s", pluralText(len(refused), "tool"), firstFew(refused)))
		fixes = append(fixes, "mend the definitions: some clients drop the whole list for one of them")
	}
	if len(long) > 0 {
		odd = append(odd, fmt.Sprintf("%s too long for models that take %d characters, as mcp__%s__…: %s",
			areText(len(long), "name"), messages.DefaultNameLimit, messages.Line(s.name, 30), firstFew(long)))
		fixes = append(fixes, "shorten them: clients drop or rename such tools")
	}
	if len(strange) > 0 {
		odd = append(odd, fmt.Sprintf("%s characters that models do not take: %s", haveText(len(strange), "name"), firstFew(strange)))
		fixes = append(fixes, "use letters, digits, _ and -: clients rename such tools, each in its own way")
	}
	if len(s.first) == 0 {
		return
	}
	fix := strings.Join(fixes, "; ")
	switch {
	case len(problems) > 0:
		s.addFinding("tools", Fail, strings.Join(append(problems, odd...), "; "), fix)
	case len(odd) > 0:
		s.addFinding("tools", Warn, strings.Join(odd, "; "), fix)
	default:
		s.addFinding("tools", Pass, fmt.Sprintf("%s: names and schemas can be used", pluralText(len(s.first), "tool")), "")
	}
}

// noModelTakes reports whether the interfaces of models refuse a character in the name of a tool.
func noModelTakes(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '_' && r != '-'
}

// haveText and areText write a count with its verb.
func haveText(n int, word string) string {
	if n == 1 {
		return "1 " + word + " has"
	}
	return fmt.Sprintf("%d %ss have", n, word)
}

// firstFew names the first three of many, and how many more there are.
func firstFew(all []string) string {
	const most = 3
	shown := make([]string, 0, most)
	for i, n := range all {
		if i == most {
			return strings.Join(shown, ", ") + fmt.Sprintf(" and %d more", len(all)-most)
		}
		shown = append(shown, messages.Line(n, 160))
	}
	return strings.Join(shown, ", ")
}

// pluralText writes a count with its noun.
func pluralText(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return fmt.Sprintf("%d %s", n, word)
}

// areText writes a count with "is" or "are".
func areText(n int, word string) string {
	if n == 1 {
		return "1 " + word + " is"
	}
	return fmt.Sprintf("%d %ss are", n, word)
}
