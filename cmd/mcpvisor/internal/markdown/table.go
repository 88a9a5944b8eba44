package markdown

import (
	"strings"

	"github.com/gomarkdown/markdown/ast"
	"github.com/jedib0t/go-pretty/v6/text"
)

// gap stands between two columns of a table.
const gap = "  "

// layOutTable returns a table without borders: a line of headings, then the rows, each cell wrapped to its column.
func (p printer) layOutTable(t *ast.Table, width int) string {
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
		rows = rows[1:] // a table whose headings are empty has none
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
			out = append(out, "") // rows of several lines are told apart by an empty one
		}
		out = append(out, layOutRow(row, widths)...)
	}
	return strings.Join(out, "\n")
}

// layOutRow returns the lines of one row.
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

// columnWidths returns how wide each column of a table is. Where all together are wider than width, the widest columns are
// narrowed to the same width, as wide as can be; none is narrower than its longest word.
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
	room := width - len(gap)*(len(natural)-1)
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
