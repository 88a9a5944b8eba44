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
)

// bugVariable is the environment variable that names the bug of which a program built with an overlay suffers.
const bugVariable = "MCPVISOR_PLANTED"

// chosenName is what the packages call it, and where they read it.
const (
	chosenName   = "thePlantedBug"
	choiceSource = `
import plantedEnvironment "os"

var ` + chosenName + ` = plantedEnvironment.Getenv("` + bugVariable + `")
`
)

// Overlay writes into dir what `go build -overlay` needs to plant bugs, all of them in one program, and returns its path. Each
// function with bugs is there once as it is and once with each of them, and looks which one was chosen when the program was
// begun: so one build serves all, and what is measured is time in which bugs are looked for, not the compiler's.
func (s *Source) Overlay(bugs []Bug, dir string) (string, error) {
	changed, err := s.changedFiles(bugs)
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
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

// changedFiles are the files that differ, or are new, with the bugs.
func (s *Source) changedFiles(bugs []Bug) (map[string][]byte, error) {
	byFile := map[string][]placedEdit{}
	changed := map[string][]byte{}
	for _, b := range bugs {
		e, err := s.placeBug(b)
		if err != nil {
			return nil, err
		}
		byFile[e.function.file] = append(byFile[e.function.file], e)
		path := filepath.Join(filepath.Dir(e.function.file), "the_planted_bug.go")
		changed[path] = []byte("package " + s.packages[b.Package].name + choiceSource)
	}
	for path, edits := range byFile {
		changed[path] = s.applyEdits(s.packages[edits[0].bug.Package].files[path], edits)
	}
	return changed, nil
}

// applyEdits puts, in place of each function that is edited, one that chooses among it and its edited copies.
func (s *Source) applyEdits(text []byte, edits []placedEdit) []byte {
	byFunction := map[*ast.FuncDecl][]placedEdit{}
	for _, e := range edits {
		byFunction[e.function.node] = append(byFunction[e.function.node], e)
	}
	functions := slices.SortedFunc(maps.Keys(byFunction), func(a, b *ast.FuncDecl) int { return int(b.Pos() - a.Pos()) })
	for _, f := range functions { // from the end, so that what stands before keeps its place
		from, to := s.offset(f.Pos()), s.offset(f.End())
		name, named := s.offset(f.Name.Pos()), s.offset(f.Name.End())
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

func copyName(f *ast.FuncDecl, n int) string { return f.Name.Name + "Planted" + strconv.Itoa(n) }

// chooserSource is a function like f that calls the copy in which the chosen bug is.
func (s *Source) chooserSource(f *ast.FuncDecl, edits []placedEdit) string {
	head := *f
	head.Body, head.Doc = nil, nil
	signature := *f.Type
	var arguments []string
	signature.Params = nameParams(f.Type.Params, "argument", &arguments)
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
		if returns == "" {
			text.WriteString("\t\treturn\n")
		}
	}
	text.WriteString("\t}\n\t" + call(0) + "}\n")
	return text.String()
}

// nameParams are parameters of which each has a name, which is added to names.
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
