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

// usesColours reports whether colours may be written to w: on a terminal, unless the person said no (no-color.org).
func usesColours(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// columnsOf is how many columns w has; 0 if nobody looks.
func columnsOf(w io.Writer) int {
	if f := fileOf(w); f != nil {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			return columns
		}
	}
	return 0
}

// colours of the phases. Each is also a word: nothing is said by colour alone.
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

// isUnapproved reports whether a server waits for the person, and for nothing else.
func isUnapproved(st messages.Status) bool {
	return st.Status == messages.Failed && st.Config != nil && st.Config.Hold != ""
}

const unapprovedWord = "unapproved"

// phaseOf is the word that a person reads for the phase of a server, and its colour. What waits for an approval has not failed,
// though programs read so.
func phaseOf(st messages.Status) (string, text.Colors) {
	if isUnapproved(st) {
		return unapprovedWord, colourOf(messages.NeedsAuth)
	}
	return string(st.Status), colourOf(st.Status)
}

// paintPhase is the phase of a server as w shows it.
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

// newTable is a table without lines, for w.
func newTable(w io.Writer, header ...any) table.Writer {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	style.Format.Header = text.FormatUpper
	t.SetStyle(style)
	t.SetOutputMirror(nil)
	t.AppendHeader(table.Row(header))
	return t
}

// printTable prints a table without blanks at the ends of its lines.
func printTable(w io.Writer, t table.Writer) {
	for line := range strings.Lines(t.Render() + "\n") {
		fmt.Fprintln(w, strings.TrimRight(line, " \n"))
	}
}

// jsonSchema is the version of what --json prints: "schema" in every object that stands at the top, in an array at the top, or on
// a line of its own. It rises when a key goes or comes to mean something else; a new key leaves it as it is.
const jsonSchema = 1

// versionedJSON is v as JSON, with the version of its form. What is no object or array of objects has none.
func versionedJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	text := bytes.TrimSpace(b.Bytes())
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

// withSchema puts the version in front of the members of an object.
func withSchema(object []byte) []byte {
	if !rawjson.IsObject(object) {
		return object
	}
	rest := bytes.TrimSpace(object[1:])
	begin := fmt.Sprintf(`{"schema":%d,`, jsonSchema)
	if rest[0] == '}' {
		begin = strings.TrimSuffix(begin, ",")
	}
	return append([]byte(begin), rest...)
}

// printJSON writes v as indented JSON with its version.
func printJSON(w io.Writer, v any) error {
	text, err := versionedJSON(v)
	return printIndented(w, text, err)
}

// printIndented writes JSON for people to read, unless err says that there is none. Characters that act on a terminal stand
// escaped in it, which means the same.
func printIndented(w io.Writer, text []byte, err error) error {
	var b bytes.Buffer
	if err == nil {
		err = json.Indent(&b, text, "", "  ")
	}
	if err != nil {
		return &exitError{exitFailed, "the answer cannot be written as JSON: " + messages.Line(err.Error(), 200)}
	}
	_, err = io.WriteString(w, escapeUnsafe(b.String())+"\n")
	return err
}

// printJSONLine writes v on one line.
func printJSONLine(w io.Writer, v any) error {
	text, err := versionedJSON(v)
	if err != nil {
		return &exitError{exitFailed, "the answer cannot be written as JSON: " + messages.Line(err.Error(), 200)}
	}
	_, err = io.WriteString(w, escapeUnsafe(string(text))+"\n")
	return err
}

// addJSONFlag gives a command --json, for what it prints with o.json.
func (o *options) addJSONFlag(cmd *cobra.Command, prints string) {
	cmd.Flags().BoolVarP(&o.json, "json", "j", false, prints)
}

// escapeUnsafe writes what Printable would replace as \u escapes. In JSON such characters stand inside of texts only.
func escapeUnsafe(s string) string {
	if messages.Printable(s) == s {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\n' || r == '\t' || r == '\r' || r == '\uFFFD' || messages.Printable(string(r)) == string(r):
			b.WriteRune(r)
		case r > 0xffff:
			hi, lo := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, hi, lo)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// clockTime is a time of day for people, with the day if it is not today.
func clockTime(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}

// relativeTime is how far away a time is: "in 3s", "5s ago".
func relativeTime(t, now time.Time) string {
	d := t.Sub(now).Round(time.Second)
	if d < 0 {
		return (-d).String() + " ago"
	}
	return "in " + d.String()
}

// countOf is a number with its word: "1 server", "3 servers".
func countOf(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return strconv.Itoa(n) + " " + word
}
