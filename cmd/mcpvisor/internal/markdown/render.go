// Package markdown prints the topics of "mcpvisor help" on a terminal. [Render] takes the Markdown of a topic, as it can be read
// in the repository, and returns lines of a given width:
//
//	fmt.Print(markdown.Render(text, markdown.Options{Width: 80, Colours: true}))
//
// How it fits: github.com/gomarkdown/markdown parses, this package lays out, and the caller
// knows the terminal. Headings and code get colours if Options.Colours is set; without colours the text alone is printed, so that a
// pipe or a file gets no control sequence. A table is as wide as its cells, and where that is more than the width its widest columns
// are wrapped first.
//
// Not promised: images, raw HTML and anything else that the topics do not use is printed as the words that it contains.
package markdown

import (
	"fmt"
	"strings"

	"github.com/gomarkdown/markdown/ast"
	"github.com/gomarkdown/markdown/parser"
	"github.com/jedib0t/go-pretty/v6/text"
)

// Options describe the reader's screen.
type Options struct {
	// Width bounds a line, in columns; 0 means 100. Words and code lines that are longer stand whole.
	Width int
	// Colours allows control sequences for colours.
	Colours bool
}

// defaultWidth is used for a pipe, whose width is not known; leastWidth keeps narrow terminals readable. Both are in columns.
const (
	defaultWidth = 100
	leastWidth   = 24
)

// Colours are in the 16 that every terminal has, so that the reader's own palette holds.
var (
	headingColours = text.Colors{text.Bold, text.FgCyan}
	codeColours    = text.Colors{text.FgCyan}
	strongColours  = text.Colors{text.Bold}
)

// syntax is the Markdown of the topics: CommonMark with tables and fenced code, and without emphasis inside of words, since
// names such as call_tool hold underscores.
const syntax = parser.NoIntraEmphasis | parser.Tables | parser.FencedCode | parser.SpaceHeadings | parser.BackslashLineBreak |
	parser.NoEmptyLineBeforeBlock | parser.Autolink

// Render returns the Markdown source as lines for a terminal; the last line ends with a newline. It never fails: what the
// parser does not know is printed as text.
func Render(source string, o Options) string {
	if o.Width == 0 {
		o.Width = defaultWidth
	}
	o.Width = max(o.Width, leastWidth)
	root := parser.NewWithExtensions(syntax).Parse([]byte(source))
	return strings.Join(printer{colours: o.Colours}.layOutBlocks(root, o.Width), "\n\n") + "\n"
}

// printer lays out the blocks of one document.
type printer struct {
	colours bool
	// inTable is set while cells are laid out: a table needs no backquotes, because its columns separate code from words.
	inTable bool
}

// layOutBlocks returns the text of each block in a parent, without empty ones.
func (p printer) layOutBlocks(parent ast.Node, width int) (blocks []string) {
	for _, n := range parent.GetChildren() {
		if block := p.layOut(n, width); block != "" {
			blocks = append(blocks, block)
		}
	}
	return blocks
}

// layOut returns one block without a newline at its end. Code blocks are indented and never wrapped, so that they can be
// copied.
func (p printer) layOut(n ast.Node, width int) string {
	switch n := n.(type) {
	case *ast.Heading:
		return p.layOutHeading(n)
	case *ast.List:
		return p.layOutList(n, width)
	case *ast.CodeBlock:
		return indentLines(strings.TrimRight(string(n.Literal), "\n"), "    ", "    ")
	case *ast.BlockQuote:
		return indentLines(strings.Join(p.layOutBlocks(n, width-2), "\n\n"), "| ", "| ")
	case *ast.Table:
		return p.layOutTable(n, width)
	case *ast.HorizontalRule:
		return strings.Repeat("-", width)
	case *ast.HTMLBlock:
		return strings.TrimRight(string(n.Literal), "\n")
	default:
		return wrapWords(p.wordsOf(n), width)
	}
}

// layOutHeading returns a heading in colours, or underlined where colours are not allowed.
func (p printer) layOutHeading(n *ast.Heading) string {
	words := p.wordsOf(n)
	switch {
	case p.colours:
		return p.paintWords(headingColours, words)
	case n.Level == 1:
		return words + "\n" + strings.Repeat("=", text.StringWidthWithoutEscSequences(words))
	default:
		return words + "\n" + strings.Repeat("-", text.StringWidthWithoutEscSequences(words))
	}
}

// layOutList returns the items of a list, with blank lines between them where the source has some.
func (p printer) layOutList(list *ast.List, width int) string {
	between := "\n\n"
	if list.Tight {
		between = "\n"
	}
	var items []string
	for i, n := range list.Children {
		mark := "- "
		if list.ListFlags&ast.ListTypeOrdered != 0 {
			mark = fmt.Sprintf("%d. ", max(list.Start, 1)+i)
		}
		body := strings.Join(p.layOutBlocks(n, width-len(mark)), between)
		items = append(items, indentLines(body, mark, strings.Repeat(" ", len(mark))))
	}
	return strings.Join(items, between)
}

// wordsOf returns the text of a block on one line: emphasis and code in colours, and links with their address if they lead out
// of the topic.
func (p printer) wordsOf(parent ast.Node) string {
	var b strings.Builder
	for _, n := range parent.GetChildren() {
		switch n := n.(type) {
		case *ast.Code:
			b.WriteString(p.paintCode(strings.ReplaceAll(string(n.Literal), `\|`, "|"))) // a pipe sign is escaped in the cell of a table
		case *ast.Strong, *ast.Emph:
			b.WriteString(p.paintWords(strongColours, p.wordsOf(n)))
		case *ast.Link:
			words := p.wordsOf(n)
			b.WriteString(words)
			if address := addressOf(string(n.Destination)); address != "" && words != string(n.Destination) {
				b.WriteString(" " + address)
			}
		case *ast.Softbreak, *ast.Hardbreak:
			b.WriteByte(' ')
		default:
			if leaf := n.AsLeaf(); leaf != nil {
				b.Write(leaf.Literal)
			} else {
				b.WriteString(p.wordsOf(n))
			}
		}
	}
	return strings.ReplaceAll(b.String(), "\n", " ")
}

// addressOf says where a link leads: to another topic by the command that shows it, to a page by its address. For a link to a
// place in the same topic, or to a file of the repository, it returns "", because the reader of a terminal cannot follow it.
func addressOf(destination string) string {
	file, _, _ := strings.Cut(destination, "#")
	switch topic, isTopic := strings.CutSuffix(file, ".md"); {
	case strings.HasPrefix(destination, "http:"), strings.HasPrefix(destination, "https:"):
		return "<" + destination + ">"
	case isTopic && !strings.Contains(topic, "/"):
		return "(mcpvisor help " + topic + ")"
	default:
		return ""
	}
}

// paintCode marks text that is typed as it stands: by a colour, or by backquotes where there are no colours.
func (p printer) paintCode(s string) string {
	if p.colours || p.inTable {
		return p.paintWords(codeColours, s)
	}
	return "`" + s + "`"
}

// paintWords colours each word of s by itself, because a line may end between two words, and a colour that is open at the end
// of a cell would run into the next column.
func (p printer) paintWords(colours text.Colors, s string) string {
	if !p.colours {
		return s
	}
	words := strings.Split(s, " ")
	for i, word := range words {
		if word != "" {
			words[i] = colours.EscapeSeq() + word + text.Reset.EscapeSeq()
		}
	}
	return strings.Join(words, " ")
}

// wrapWords breaks a text at blanks so that no line is wider than width. A wider word stands on a line of its own.
func wrapWords(s string, width int) string {
	var b strings.Builder
	column := 0
	for _, word := range strings.Fields(s) {
		wide := text.StringWidthWithoutEscSequences(word)
		switch {
		case column == 0:
		case column+1+wide > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += wide
	}
	return b.String()
}

// indentLines puts first before the first line and rest before the others; empty lines get no trailing blanks.
func indentLines(s, first, rest string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		switch {
		case i == 0:
			lines[i] = first + line
		case line != "":
			lines[i] = rest + line
		}
	}
	return strings.Join(lines, "\n")
}
