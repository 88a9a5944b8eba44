package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// usesColours reports whether colours may be written to w: only to a terminal, and not if NO_COLOR (no-color.org) or TERM=dumb
// forbid it.
func usesColours(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// columnsOf returns the width of w in columns, or 0 if w is no terminal: then nothing needs to be cut.
func columnsOf(w io.Writer) int {
	if f := fileOf(w); f != nil {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			return columns
		}
	}
	return 0
}

// colourOf returns the colour of a phase. The phase is always printed as a word too, so that nothing depends on colour.
func colourOf(p messages.Phase) text.Colors {
	switch p {
	case messages.Connected:
		return text.Colors{text.FgGreen}
	case messages.Failed:
		return text.Colors{text.FgRed}
	case messages.NeedsAuth, messages.Pending:
		return text.Colors{text.FgYellow}
	case messages.Disabled:
		return text.Colors{text.Faint}
	}
	return nil
}

// isUnapproved reports whether a server waits only for the person's approval. Its entry then carries a Hold, and the manager
// shows it as failed.
func isUnapproved(st messages.Status) bool {
	return st.Status == messages.Failed && st.Config != nil && st.Config.Hold != ""
}

// unapprovedWord replaces "failed" in output for people; JSON keeps the phase.
const unapprovedWord = "unapproved"

// phaseOf returns the word that a person reads for the phase of a server, and its colour. A server that waits for an approval
// is "unapproved" here, though programs read "failed", because for the person nothing has gone wrong.
func phaseOf(st messages.Status) (string, text.Colors) {
	if isUnapproved(st) {
		return unapprovedWord, colourOf(messages.NeedsAuth)
	}
	return string(st.Status), colourOf(st.Status)
}

// paintPhase returns the word of a server's phase, coloured if w takes colours.
func paintPhase(w io.Writer, st messages.Status) string {
	word, colours := phaseOf(st)
	return paintText(w, colours, word)
}

// paintText colours s if w takes colours.
func paintText(w io.Writer, colours text.Colors, s string) string {
	if !usesColours(w) || colours == nil {
		return s
	}
	return colours.EscapeSeq() + s + text.Reset.EscapeSeq()
}

// newTable returns a table without borders, whose header is in upper case and whose columns are two spaces apart.
func newTable(w io.Writer, header ...any) table.Writer {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	// Borders cost columns on narrow terminals and disturb grep and awk.
	style.Format.Header = text.FormatUpper
	t.SetStyle(style)
	t.SetOutputMirror(nil)
	t.AppendHeader(table.Row(header))
	return t
}

// printTable prints a table without blanks at the ends of its lines, which the library pads to the full width.
func printTable(w io.Writer, t table.Writer) {
	for line := range strings.Lines(t.Render() + "\n") {
		fmt.Fprintln(w, strings.TrimRight(line, " \n"))
	}
}

// jsonSchema is the version of what --json prints: the member "schema" of every object at the top, of every element of an array
// at the top, and of every line of JSON lines. It rises when a key disappears or changes its meaning; a new key leaves it.
const jsonSchema = 1

// versionedJSON encodes v with the version of its form. A value that is no object and no array of objects gets no version.
func versionedJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	text := bytes.TrimSpace(b.Bytes())
	// The text is edited, not decoded again, because decoding into maps would sort the keys that the struct puts in order.
	if len(text) == 0 || text[0] != '[' {
		return withSchema(text), nil
	}
	out := []byte{'['}
	for a := rawjson.ArrayAt(text, 0, 0); a.Next(); {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, withSchema(a.Skip())...)
	}
	return append(out, ']'), nil
}

// withSchema puts the member "schema" in front of the other members of an object, and returns anything else as it is.
func withSchema(object []byte) []byte {
	if !rawjson.IsObject(object) {
		return object
	}
	rest := bytes.TrimSpace(object[1:])
	begin := fmt.Sprintf(`{"schema":%d,`, jsonSchema)
	if rest[0] == '}' { // an empty object has no member after the comma
		begin = strings.TrimSuffix(begin, ",")
	}
	return append([]byte(begin), rest...)
}

// printJSON writes v as indented JSON with its version, escaped as printIndented does.
func printJSON(w io.Writer, v any) error {
	text, err := versionedJSON(v)
	return printIndented(w, text, err)
}

// printIndented writes JSON for people to read, unless err says that there is none. Characters that act on a terminal are
// written as \u escapes, which means the same to every JSON reader.
func printIndented(w io.Writer, text []byte, err error) error {
	var b bytes.Buffer
	if err == nil {
		err = json.Indent(&b, text, "", "  ")
	}
	if err != nil {
		return exitWith(exitFailed, "the answer cannot be written as JSON: "+messages.Line(err.Error(), 200))
	}
	_, err = io.WriteString(w, escapeUnsafe(b.String())+"\n")
	return err
}

// printJSONLine writes v as one line of JSON with its version, for output that programs read line by line.
func printJSONLine(w io.Writer, v any) error {
	text, err := versionedJSON(v)
	if err != nil {
		return exitWith(exitFailed, "the answer cannot be written as JSON: "+messages.Line(err.Error(), 200))
	}
	_, err = io.WriteString(w, escapeUnsafe(string(text))+"\n")
	return err
}

// addJSONFlag adds --json to a command. prints is the flag's help text: what the command prints then.
func (o *options) addJSONFlag(cmd *cobra.Command, prints string) {
	cmd.Flags().BoolVarP(&o.json, "json", "j", false, prints)
}

// escapeUnsafe replaces every character that [messages.Printable] would replace by a JSON \u escape, so that no information is
// lost. The result is still valid JSON, because outside of strings JSON has only ASCII and white space.
func escapeUnsafe(s string) string {
	if messages.Printable(s) == s {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t' || r == '\r' || r == '\uFFFD' || messages.Printable(string(r)) == string(r):
			b.WriteRune(r)
		// JSON writes a character beyond the basic plane as two UTF-16 surrogates.
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// clockTime formats a time of day for people, in local time, and with the date if it is not today.
func clockTime(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}

// relativeTime says how far away a time is, in whole seconds: "in 3s", "5s ago".
func relativeTime(t, now time.Time) string {
	d := t.Sub(now).Round(time.Second)
	if d < 0 {
		return (-d).String() + " ago"
	}
	return "in " + d.String()
}

// countOf joins a number and its noun, in the plural unless the number is 1: "1 server", "3 servers". Nouns take an "s".
func countOf(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return strconv.Itoa(n) + " " + word
}
