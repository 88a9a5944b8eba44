package planted

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/printer"
	"go/scanner"
	"go/token"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/test/chaos/planted/bugs"
)

// fixAdvice returns the advice for a bug whose code is gone.
func fixAdvice(b bugs.Bug) string {
	return "look for where it is decided now, so that the bug means what it meant (" + b.Why + "), and change its row"
}

// misplacedError returns the error of a bug whose code is not found exactly once, with hints where its code may stand now: the
// same code in another function of the package, or else the most similar code.
func (s *Source) misplacedError(b bugs.Bug, c *packageCode, within []function, wanted []ast.Node, found int) error {
	what := oneLine(b.Old)
	if found > 1 {
		return fmt.Errorf("bug %s: %s in %s has %q %d times, not once: take in what stands before or behind it",
			b.Name, b.Package, b.In, what, found)
	}
	var hints []string
	for _, d := range c.decls {
		if d.symbol != b.In && len(findNodes(d.node, wanted)) > 0 {
			hints = append(hints, fmt.Sprintf("it stands in %s (%s)", d.symbol, filepath.Base(d.file)))
		}
	}
	missing := fmt.Sprintf("%s of %s does not have %q", b.In, b.Package, what)
	// Without the function the similar code may be in any other one.
	if len(within) == 0 {
		missing = fmt.Sprintf("%s has no %s, in which %q stood", b.Package, b.In, what)
		within = c.decls
	}
	if closest := s.nearestCode(within, wanted); len(hints) == 0 && closest != "" {
		hints = append(hints, "the nearest to it is "+closest)
	}
	return fmt.Errorf("bug %s: %s; %s", b.Name, missing, strings.Join(append(hints, fixAdvice(b)), "; "))
}

// nearestCode returns the code that has most words in common with the first wanted node, and its place. It compares expressions
// with expressions and statements with statements; below a similarity of 0.3 it returns nothing, because such a hint would
// mislead.
func (s *Source) nearestCode(within []function, wanted []ast.Node) string {
	words := wordsOf(wanted[0], token.NewFileSet())
	_, expression := wanted[0].(ast.Expr)
	best, closest := 0.0, ""
	for _, d := range within {
		ast.Inspect(d.node, func(n ast.Node) bool {
			switch n.(type) {
			// Blocks would repeat their statements, and single words match everywhere.
			case nil, *ast.BlockStmt, *ast.Ident, *ast.BasicLit:
				return true
			case ast.Expr:
				if !expression {
					return true
				}
			case ast.Stmt:
				if expression {
					return true
				}
			default:
				return true
			}
			if score := wordSimilarity(words, wordsOf(n, s.fset)); score > best {
				at := s.fset.Position(n.Pos())
				best, closest = score, fmt.Sprintf("%q in %s (%s:%d)", oneLine(sourceText(n, s.fset)), d.symbol, filepath.Base(at.Filename), at.Line)
			}
			return true
		})
	}
	if best < 0.3 {
		return ""
	}
	return closest
}

// wordSimilarity returns the share of words, 0 to 1, that two sorted lists have in common.
func wordSimilarity(a, b []string) float64 {
	common, all := 0, len(a)+len(b)
	for len(a) > 0 && len(b) > 0 {
		switch strings.Compare(a[0], b[0]) {
		case 0:
			common, a, b = common+2, a[1:], b[1:]
		case -1:
			a = a[1:]
		default:
			b = b[1:]
		}
	}
	return float64(common) / float64(max(all, 1))
}

// sourceText returns the formatted source of a node, empty if it cannot be printed.
func sourceText(n ast.Node, fset *token.FileSet) string {
	var text bytes.Buffer
	if err := printer.Fprint(&text, fset, n); err != nil {
		return ""
	}
	return text.String()
}

// wordsOf returns the sorted tokens of a piece of code.
func wordsOf(n ast.Node, fset *token.FileSet) (words []string) {
	text := []byte(sourceText(n, fset))
	var scan scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	scan.Init(file, text, func(token.Position, string) {}, 0)
	for {
		_, tok, lit := scan.Scan()
		if tok == token.EOF {
			slices.Sort(words)
			return words
		}
		if lit == "" {
			lit = tok.String()
		}
		words = append(words, lit)
	}
}

// oneLine joins the words of a text with single spaces and cuts it to 120 characters, so that it fits into a message.
func oneLine(text string) string {
	line := []rune(strings.Join(strings.Fields(text), " "))
	if len(line) > 120 {
		return string(line[:120]) + "…"
	}
	return string(line)
}
