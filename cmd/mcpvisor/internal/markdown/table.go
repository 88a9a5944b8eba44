package markdown

import (
	"slices"
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
	if crowded(rows, widths, width) {
		return layOutBlocks(rows, width)
	}
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

// crowded reports whether the long words of one column, such as names of functions, leave another one no room for its sentences.
func crowded(rows [][]string, widths []int, width int) bool {
	for _, row := range rows {
		for i, cell := range row {
			if widths[i] < width/6 && text.StringWidthWithoutEscSequences(cell) > 2*widths[i] && slices.Max(widths) > width*2/5 {
				return true
			}
		}
	}
	return false
}

// layOutBlocks returns the rows one below the other: the first cell, and the others below it.
func layOutBlocks(rows [][]string, width int) string {
	const indent = "    "
	var blocks []string
	for _, row := range rows {
		lines := []string{wrapWords(row[0], width)}
		for _, cell := range row[1:] {
			lines = append(lines, indent+strings.ReplaceAll(wrapWords(cell, width-len(indent)), "\n", "\n"+indent))
		}
		blocks = append(blocks, strings.Join(lines, "\n"))
	}
	return strings.Join(blocks, "\n\n")
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
