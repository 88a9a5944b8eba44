package arch_test

import (
	"go/ast"
	"go/token"
	"testing"
)

// A time as a number has lost its monotonic clock: what is measured from it is wrong after the machine's clock was set. A server that
// had gone was not missed for as long as the clock was set back. Times of files have no other clock.
func TestNothingIsMeasuredByTheWallClock(t *testing.T) {
	eachSource(t, func(_ string, f *ast.File, fset *token.FileSet) {
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok || s.Sel.Name != "UnixNano" && s.Sel.Name != "UnixMicro" {
				return true
			}
			if call, ok := s.X.(*ast.CallExpr); ok {
				if selector, ok := call.Fun.(*ast.SelectorExpr); ok && selector.Sel.Name == "ModTime" {
					return true
				}
			}
			t.Errorf("%s: it makes a number of a time; keep the time.Time, or what time.Since says of a fixed one", fset.Position(s.Pos()))
			return true
		})
	})
}
