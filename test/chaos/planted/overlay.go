package planted

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/test/chaos/planted/bugs"
)

// bugVariable is the environment variable that chooses the bug of a program that was built with an overlay. Without it the
// program has no bug.
const bugVariable = "MCPVISOR_PLANTED"

// chosenName is the variable of each changed package that holds the chosen bug, and choiceSource declares it. The import has a
// name of its own, because the package may use the word os for something else.
const (
	chosenName   = "thePlantedBug"
	choiceSource = `
import plantedEnvironment "os"

var ` + chosenName + ` = plantedEnvironment.Getenv("` + bugVariable + `")
`
)

// Overlay writes into dir the files that `go build -overlay` needs to plant all bugs into one program, and returns the path of
// the overlay. Each function with bugs is there once as it is and once with each of its bugs, and checks at run time which one
// was chosen. So one build serves all bugs, and the measured time is that of the search, not the compiler's.
func (s *Source) Overlay(planned []bugs.Bug, dir string) (string, error) {
	changed, err := s.changedFiles(planned)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	// The files are sorted so that two builds have the same overlay and the go command's cache holds.
	for i, path := range slices.Sorted(maps.Keys(changed)) {
		replace[path] = filepath.Join(dir, fmt.Sprintf("%d.go", i))
		if err := os.WriteFile(replace[path], changed[path], 0o600); err != nil {
			return "", err
		}
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

// changedFiles returns the texts of the files that the bugs change or add, by path.
func (s *Source) changedFiles(planned []bugs.Bug) (map[string][]byte, error) {
	byFile := map[string][]placedEdit{}
	changed := map[string][]byte{}
	for _, b := range planned {
		e, err := s.placeBug(b)
		if err != nil {
			return nil, err
		}
		byFile[e.function.file] = append(byFile[e.function.file], e)
		// One more file in the package reads the name of the chosen bug from the environment.
		path := filepath.Join(filepath.Dir(e.function.file), "the_planted_bug.go")
		changed[path] = []byte("package " + s.packages[b.Package].name + choiceSource)
	}
	for path, edits := range byFile {
		changed[path] = s.applyEdits(s.packages[edits[0].bug.Package].files[path], edits)
	}
	return changed, nil
}

// applyEdits replaces each edited function by a chooser, a copy without a bug and one copy for each bug.
func (s *Source) applyEdits(text []byte, edits []placedEdit) []byte {
	byFunction := map[*ast.FuncDecl][]placedEdit{}
	for _, e := range edits {
		byFunction[e.function.node] = append(byFunction[e.function.node], e)
	}
	functions := slices.SortedFunc(maps.Keys(byFunction), func(a, b *ast.FuncDecl) int { return int(b.Pos() - a.Pos()) })
	for _, f := range functions { // from the end, so that the offsets of earlier functions stay valid
		from, to := s.offset(f.Pos()), s.offset(f.End())
		name, named := s.offset(f.Name.Pos()), s.offset(f.Name.End())
		// copied returns the n-th copy; copy 0 has no edit and a nil node.
		copied := func(n int, e placedEdit) string {
			own := string(text[:name]) + copyName(f, n)
			if e.function.node == nil {
				return own[from:] + string(text[named:to])
			}
			return own[from:] + string(text[named:e.from]) + e.replacement + string(text[e.to:to])
		}
		all := []string{s.chooserSource(f, byFunction[f]), copied(0, placedEdit{})}
		for i, e := range byFunction[f] {
			all = append(all, copied(i+1, e))
		}
		text = slices.Concat(text[:from], []byte(strings.Join(all, "\n\n")), text[to:])
	}
	return text
}

// copyName returns the name of the n-th copy of a function.
func copyName(f *ast.FuncDecl, n int) string { return f.Name.Name + "Planted" + strconv.Itoa(n) }

// chooserSource returns a function with the name and the signature of f that calls the copy with the chosen bug, or else copy
// 0.
func (s *Source) chooserSource(f *ast.FuncDecl, edits []placedEdit) string {
	head := *f
	// The head is printed without its body and its doc comment, which stay with the copies.
	head.Body, head.Doc = nil, nil
	signature := *f.Type
	var arguments []string
	signature.Params = nameParams(f.Type.Params, "argument", &arguments)
	// A variadic parameter is passed on as a list.
	if n := len(signature.Params.List); n > 0 {
		if _, ok := signature.Params.List[n-1].Type.(*ast.Ellipsis); ok {
			arguments[len(arguments)-1] += "..."
		}
	}
	head.Type = &signature
	before := ""
	if f.Recv != nil {
		var receiver []string
		head.Recv = nameParams(f.Recv, "receiver", &receiver)
		before = receiver[0] + "."
	}
	returns := ""
	if f.Type.Results != nil {
		returns = "return "
	}
	call := func(n int) string {
		return returns + before + copyName(f, n) + "(" + strings.Join(arguments, ", ") + ")\n"
	}
	var text strings.Builder
	text.WriteString(sourceText(&head, s.fset) + " {\n\tswitch " + chosenName + " {\n")
	for i, e := range edits {
		fmt.Fprintf(&text, "\tcase %q:\n\t\t%s", e.bug.Name, call(i+1))
		// A function without results needs a return, or it would go on to copy 0.
		if returns == "" {
			text.WriteString("\t\treturn\n")
		}
	}
	text.WriteString("\t}\n\t" + call(0) + "}\n")
	return text.String()
}

// nameParams returns the parameters with a name each, because a chooser has to pass on those without a name and those called _.
// It appends the names to names.
func nameParams(params *ast.FieldList, word string, names *[]string) *ast.FieldList {
	out := &ast.FieldList{}
	for _, p := range params.List {
		field := &ast.Field{Type: p.Type}
		for i := range max(len(p.Names), 1) {
			name := word + strconv.Itoa(len(*names))
			if i < len(p.Names) && p.Names[i].Name != "_" {
				name = p.Names[i].Name
			}
			*names = append(*names, name)
			field.Names = append(field.Names, ast.NewIdent(name))
		}
		out.List = append(out.List, field)
	}
	return out
}
