package terminal

import (
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
)

// NewTable returns a table without borders, whose header is in upper case and whose columns are two spaces apart.
func NewTable(w io.Writer, header ...any) table.Writer {
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

// PrintTable prints a table without blanks at the ends of its lines, which the library pads to the full width.
func PrintTable(w io.Writer, t table.Writer) {
	for line := range strings.Lines(t.Render() + "\n") {
		fmt.Fprintln(w, strings.TrimRight(line, " \n"))
	}
}

// PaintText colours s if w takes colours.
func PaintText(w io.Writer, colours text.Colors, s string) string {
	if !UsesColours(w) || colours == nil {
		return s
	}
	return colours.EscapeSeq() + s + text.Reset.EscapeSeq()
}
