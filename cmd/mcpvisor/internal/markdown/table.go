package markdown

import (
	"strings"

	"github.com/gomarkdown/markdown/ast"
	"github.com/jedib0t/go-pretty/v6/text"
)

// gap separates two columns of a table.
const gap = "  "

// layOutTable returns a table without borders: the headings, then the rows, each cell wrapped to its column. If a row has
// several lines, all rows are separated by empty lines.
func (p printer) layOutTable(t *ast.Table, width int) string {
	// p is a copy, so that text after the table is not concerned.
	p.inTable = true
	var rows [][]string
	for _, part := range t.Children {
		for _, row := range part.GetChildren() {
			var cells []string
			for _, cell := range row.GetChildren() {
				cells = append(cells, p.wordsOf(cell))
			}
			rows = append(rows, cells)
		}
	}
	if len(rows) == 0 {
		return ""
	}
	if strings.Join(rows[0], "") == "" {
		rows = rows[1:] // the headings are empty: the table has none
	} else {
		for i, cell := range rows[0] {
			rows[0][i] = p.paintWords(strongColours, cell)
		}
	}
	widths := columnWidths(rows, width)
	wrapped := false
	for _, row := range rows {
		for i, cell := range row {
			wrapped = wrapped || text.StringWidthWithoutEscSequences(cell) > widths[i]
		}
	}
	var out []string
	for i, row := range rows {
		if wrapped && i > 0 {
			out = append(out, "") // rows of several lines are separated by an empty one
		}
		out = append(out, layOutRow(row, widths)...)
	}
	return strings.Join(out, "\n")
}

// layOutRow returns the lines of one row; its height is that of its highest cell.
func layOutRow(row []string, widths []int) (lines []string) {
	var cells [][]string
	height := 0
	for i, cell := range row {
		parts := strings.Split(wrapWords(cell, widths[i]), "\n")
		cells = append(cells, parts)
		height = max(height, len(parts))
	}
	for k := range height {
		var b strings.Builder
		for i, parts := range cells {
			part := ""
			if k < len(parts) {
				part = parts[k]
			}
			b.WriteString(part)
			b.WriteString(strings.Repeat(" ", max(0, widths[i]-text.StringWidthWithoutEscSequences(part))))
			b.WriteString(gap)
		}
		lines = append(lines, strings.TrimRight(b.String(), " "))
	}
	return lines
}

// columnWidths returns the width of each column. If the natural widths exceed width, it finds the greatest common bound for the
// wide columns that makes the table fit. No column is narrower than its longest word, so that the table may stay too wide.
func columnWidths(rows [][]string, width int) []int {
	var natural, least []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(natural) {
				natural, least = append(natural, 0), append(least, 0)
			}
			natural[i] = max(natural[i], text.StringWidthWithoutEscSequences(cell))
			for _, word := range strings.Fields(cell) {
				least[i] = max(least[i], text.StringWidthWithoutEscSequences(word))
			}
		}
	}
	// The gaps between the columns are not for text.
	room := width - len(gap)*(len(natural)-1)
	// Widths of terminals are small, so that trying each bound is fast enough.
	for most := width; most > 0; most-- {
		sum := 0
		widths := make([]int, len(natural))
		for i := range natural {
			widths[i] = max(min(natural[i], most), least[i])
			sum += widths[i]
		}
		if sum <= room {
			return widths
		}
	}
	return least
}
