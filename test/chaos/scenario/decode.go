package scenario

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/mcpvisor/mcpvisor/messages"
)

// decoder puts the tree of a YAML file into the types of this package. The YAML library decodes as well, and stops at
// the first problem; the author of a scenario is better served by all of them, each with its place.
type decoder struct {
	file string
	list Problems
	// positions maps the paths of the scenario to their places in the file, for the problems of Check and Plan.
	positions map[string]position
}

type position struct{ line, column int }

var durationType = reflect.TypeFor[messages.Duration]()

// addProblem reports a problem at a token, which may be nil.
func (d *decoder) addProblem(t *token.Token, path, do, what string, args ...any) {
	p := Problem{File: d.file, Path: path, What: fmt.Sprintf(what, args...), Do: do}
	if t != nil && t.Position != nil {
		p.Line, p.Column = t.Position.Line, t.Position.Column
	}
	d.list = append(d.list, p)
}

// recordPosition remembers the place of a path.
func (d *decoder) recordPosition(path string, t *token.Token) {
	if t != nil && t.Position != nil {
		d.positions[path] = position{t.Position.Line, t.Position.Column}
	}
}

// locateProblems sets the places of problems from Check: that of their path or, if the path is not written in the file,
// that of the nearest part around it.
func (d *decoder) locateProblems(ps Problems) Problems {
	for i := range ps {
		ps[i].File = d.file
		for path := ps[i].Path; ; path = path[:max(strings.LastIndexAny(path, ".["), 0)] {
			if at, ok := d.positions[path]; ok {
				ps[i].Line, ps[i].Column = at.line, at.column
				break
			}
			if path == "" {
				break
			}
		}
	}
	return ps
}

// decodeValue decodes a node into v. Tags, anchors and null are refused, because a scenario has one way to write each
// value.
func (d *decoder) decodeValue(n ast.Node, path string, v reflect.Value) {
	if tag, ok := n.(*ast.TagNode); ok {
		d.addProblem(firstToken(n), path, "leave it out", "a tag (%s) is not read here", messages.Line(tag.Start.Value, 40))
		return
	}
	switch n.(type) {
	case *ast.NullNode:
		d.addProblem(firstToken(n), path, "leave the key out to have its default", "there is no value")
		return
	case *ast.AnchorNode, *ast.AliasNode:
		d.addProblem(firstToken(n), path, "write it out", "anchors and aliases are not read here")
		return
	}
	switch {
	case v.Type() == durationType:
		d.decodeDuration(n, path, v)
	case v.Kind() == reflect.Struct:
		d.decodeStruct(n, path, v)
	case v.Kind() == reflect.Slice:
		d.decodeList(n, path, v)
	case v.Kind() == reflect.Map:
		d.decodeMap(n, path, v)
	default:
		d.decodeScalar(n, path, v)
	}
}

// decodeStruct reads the keys of a struct; an unknown key is a problem, because it is usually misspelt.
func (d *decoder) decodeStruct(n ast.Node, path string, v reflect.Value) {
	pairs, ok := d.pairsOf(n, path)
	if !ok {
		return
	}
	fields := fieldsOf(v.Type())
	for _, pair := range pairs {
		key, t := keyOf(pair)
		i, known := fields.index[key]
		if !known {
			d.addProblem(t, joinPath(path, key), suggestWord(key, fields.names), "the key %s is not known here", quoteWord(key))
			continue
		}
		d.recordPosition(joinPath(path, key), firstToken(pair.Value))
		d.decodeValue(pair.Value, joinPath(path, key), v.Field(i))
	}
}

// decodeMap reads a mapping with keys of any name.
func (d *decoder) decodeMap(n ast.Node, path string, v reflect.Value) {
	pairs, ok := d.pairsOf(n, path)
	if !ok {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, pair := range pairs {
		key, _ := keyOf(pair)
		d.recordPosition(joinPath(path, key), firstToken(pair.Value))
		item := reflect.New(v.Type().Elem()).Elem()
		d.decodeValue(pair.Value, joinPath(path, key), item)
		v.SetMapIndex(reflect.ValueOf(key), item)
	}
}

// decodeList reads a list. A list of words may be one word without the brackets.
func (d *decoder) decodeList(n ast.Node, path string, v reflect.Value) {
	nodes := []ast.Node{n}
	if s, ok := n.(*ast.SequenceNode); ok {
		nodes = s.Values
	} else if _, ok := scalarText(n); !ok || v.Type().Elem().Kind() != reflect.String {
		d.addProblem(firstToken(n), path, "write each entry on a line of its own that begins with a dash", "a list is needed here")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(nodes), len(nodes)))
	for i, node := range nodes {
		at := fmt.Sprintf("%s[%d]", path, i)
		d.recordPosition(at, firstToken(node))
		if w, ok := colonWord(node); ok && v.Type().Elem().Kind() == reflect.String {
			v.Index(i).SetString(w)
			continue
		}
		d.decodeValue(node, at, v.Index(i))
	}
}

// decodeDuration reads a number with a unit. A bare number is refused, because its unit would be a guess.
func (d *decoder) decodeDuration(n ast.Node, path string, v reflect.Value) {
	s, ok := scalarText(n)
	if !ok {
		d.addProblem(firstToken(n), path, "write a number with its unit, such as 30s or 2m", "a duration is needed here")
		return
	}
	t, err := time.ParseDuration(s)
	if err != nil {
		d.addProblem(firstToken(n), path, "write a number with its unit, such as 30s or 2m", "%s is no duration", quoteWord(s))
		return
	}
	v.SetInt(int64(t))
}

// decodeScalar reads one value. A value that does not fit leaves v at zero, and the problem names the wanted form.
func (d *decoder) decodeScalar(n ast.Node, path string, v reflect.Value) {
	s, ok := scalarText(n)
	if !ok {
		d.addProblem(firstToken(n), path, "", "one value is needed here, not a list or a mapping")
		return
	}
	var err error
	want := ""
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
	case reflect.Bool:
		var b bool
		// ParseBool accepts further words, such as 1 and T.
		if b, err = strconv.ParseBool(s); err == nil && s != "true" && s != "false" {
			err = strconv.ErrSyntax
		}
		want = "true or false"
		v.SetBool(b)
	case reflect.Int:
		var i int64
		i, err = strconv.ParseInt(s, 10, 0)
		want = "a whole number"
		v.SetInt(i)
	case reflect.Uint64:
		var u uint64
		u, err = strconv.ParseUint(s, 10, 64)
		want = "a whole number that is not negative"
		v.SetUint(u)
	case reflect.Float64:
		var f float64
		if f, err = strconv.ParseFloat(s, 64); err == nil && (math.IsNaN(f) || math.IsInf(f, 0)) {
			err = strconv.ErrRange
		}
		want = "a number"
		v.SetFloat(f)
	default:
		want, err = "nothing that can be written", strconv.ErrSyntax
	}
	if err != nil {
		v.SetZero()
		d.addProblem(firstToken(n), path, "write "+want, "%s does not fit here", quoteWord(s))
	}
}

// pairsOf returns the keys and values of a mapping. The parser gives a mapping of one pair a type of its own.
func (d *decoder) pairsOf(n ast.Node, path string) ([]*ast.MappingValueNode, bool) {
	var pairs []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		pairs = m.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{m}
	default:
		d.addProblem(firstToken(n), path, "write key: value", "keys with values are needed here")
		return nil, false
	}
	for _, pair := range pairs {
		if pair.Key.IsMergeKey() {
			d.addProblem(pair.Key.GetToken(), path, "write it out", "merge keys (<<) are not read here")
			return nil, false
		}
	}
	return pairs, true
}

func keyOf(pair *ast.MappingValueNode) (string, *token.Token) {
	t := pair.Key.GetToken()
	return t.Value, t
}

// scalarText returns the value of a scalar as it is written, without quotes; false for a list or a mapping.
func scalarText(n ast.Node) (string, bool) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, true
	case *ast.LiteralNode:
		return strings.TrimRight(n.Value.Value, "\n"), true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	}
	return "", false
}

// colonWord returns a word such as any:3 inside of brackets, which the parser takes for a key with a value, although
// YAML wants a space after the colon of a key.
func colonWord(n ast.Node) (string, bool) {
	pair, ok := n.(*ast.MappingValueNode)
	if m, isMapping := n.(*ast.MappingNode); isMapping && len(m.Values) == 1 && !m.IsFlowStyle {
		pair, ok = m.Values[0], true
	}
	if !ok {
		return "", false
	}
	value, scalar := scalarText(pair.Value)
	colon, after := pair.Start, pair.Value.GetToken()
	if !scalar || colon.Position.Line != after.Position.Line || after.Position.Column != colon.Position.Column+1 {
		return "", false
	}
	return pair.Key.GetToken().Value + ":" + value, true
}

// joinPath returns the path of a member, in the form in which problems name places: faults[0].with.
func joinPath(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// fieldIndex holds the keys of a struct, by their yaml tags.
type fieldIndex struct {
	names []string
	index map[string]int
}

// fieldsOf returns the keys of a struct type in the order of its fields.
func fieldsOf(t reflect.Type) fieldIndex {
	f := fieldIndex{index: map[string]int{}}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		f.names = append(f.names, name)
		f.index[name] = i
	}
	return f
}
