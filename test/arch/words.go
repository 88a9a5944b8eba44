package arch

import (
	"fmt"
	"go/ast"
	"go/token"
	"unicode"
)

// Particles are identifiers that say nothing where they stand alone, whatever they name: a reader who meets `told` or `by`
// must look for the declaration to learn which thing, or which actor, is meant.
var Particles = map[string]string{
	"is":    "name the condition: hasRoom, isRemote, ok",
	"again": "name the second thing, or the decision: retry, second",
	"of":    "name what it is of: secretsOf, server",
	"by":    "name who acts: caller, sender",
	"told":  "name what was received, or who receives it: received, handleNotification",
	"wrong": "name the fault: problem, err, invalid",
}

// Metaphors are words that this code once had for roles that the field has names for. They count as parts of an identifier,
// too: newDesk is one.
var Metaphors = map[string]string{
	"desk":       "who answers a server's requests is a request handler; who asks at the terminal is a prompter",
	"clerk":      "an actor that answers servers' requests is a handler actor",
	"pursuit":    "who asks for a task until it ends is a task poller",
	"courier":    "say what it brings to whom: redirect handler, token client",
	"doorman":    "who bounds connections is a connection limiter",
	"gatekeeper": "who decides about a peer's commands is its authorizer",
	"lobby":      "the network of a test is a test network",
	"seat":       "a scripted server's place in a run is a server or a listener",
	"hatch":      "name the socket or the process that it is",
	"shelf":      "what keeps a server's lists is a list cache",
	"util":       "name the type or the file after what it holds",
	"utils":      "name the type or the file after what it holds",
}

// Words returns the declarations of a file whose name is one of Particles or has one of Metaphors in it.
func Words(fset *token.FileSet, f *ast.File) []string {
	var bad []string
	// check looks at one declaration; uses of a name are not looked at, since each has its declaration.
	check := func(id *ast.Ident) {
		if id == nil {
			return
		}
		if why, ok := Particles[id.Name]; ok {
			bad = append(bad, fmt.Sprintf("%s: %s says nothing alone: %s", fset.Position(id.Pos()), id.Name, why))
		}
		for _, part := range parts(id.Name) {
			if why, ok := Metaphors[part]; ok {
				bad = append(bad, fmt.Sprintf("%s: %s is a metaphor: %s", fset.Position(id.Pos()), id.Name, why))
			}
		}
	}
	checkFields := func(lists ...*ast.FieldList) {
		for _, list := range lists {
			if list == nil {
				continue
			}
			for _, field := range list.List {
				for _, id := range field.Names {
					check(id)
				}
			}
		}
	}
	// checkExprs takes what := declares; an assignment to an existing name declares nothing.
	checkExprs := func(tok token.Token, exprs ...ast.Expr) {
		for _, e := range exprs {
			if id, ok := e.(*ast.Ident); ok && tok == token.DEFINE {
				check(id)
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			check(n.Name)
			checkFields(n.Recv)
		case *ast.FuncType:
			checkFields(n.TypeParams, n.Params, n.Results)
		case *ast.StructType:
			checkFields(n.Fields)
		case *ast.InterfaceType:
			checkFields(n.Methods)
		case *ast.TypeSpec:
			check(n.Name)
		case *ast.ValueSpec:
			for _, id := range n.Names {
				check(id)
			}
		case *ast.AssignStmt:
			checkExprs(n.Tok, n.Lhs...)
		case *ast.RangeStmt:
			checkExprs(n.Tok, n.Key, n.Value)
		}
		return true
	})
	return bad
}

// CountWords counts the unexported functions and methods of a file, without main and init, and those among them whose name is
// one word: such a name has no object, and says less than its author thinks.
func CountWords(f *ast.File) (oneWord, all int) {
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Name.IsExported() || fn.Name.Name == "main" || fn.Name.Name == "init" {
			continue
		}
		all++
		if len(parts(fn.Name.Name)) == 1 {
			oneWord++
		}
	}
	return oneWord, all
}

// parts takes a name apart where a capital letter or an underscore begins another word, in lower case.
func parts(name string) []string {
	var words []string
	var word []rune
	flush := func() {
		if len(word) > 0 {
			words = append(words, string(word))
			word = nil
		}
	}
	runes := []rune(name)
	for i, r := range runes {
		upper := unicode.IsUpper(r)
		// A capital begins a word after a small letter, and the last capital of an abbreviation begins the next word: HTTPServer.
		begins := upper && i > 0 && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
		if r == '_' || begins {
			flush()
		}
		if r != '_' {
			word = append(word, unicode.ToLower(r))
		}
	}
	flush()
	return words
}
