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

// decoder puts the tree of a YAML file into the types of this package. The YAML library decodes as well, and stops at the
// first problem; a person who writes a scenario is better served by all of them, each with its place.
type decoder struct {
	file string
	list Problems
	// places are where each path of the scenario stands in the file.
	places map[string]place
}

type place struct{ line, column int }

var durationType = reflect.TypeFor[messages.Duration]()

func (d *decoder) fail(t *token.Token, path, do, what string, args ...any) {
	p := Problem{File: d.file, Path: path, What: fmt.Sprintf(what, args...), Do: do}
	if t != nil && t.Position != nil {
		p.Line, p.Column = t.Position.Line, t.Position.Column
	}
	d.list = append(d.list, p)
}

// at remembers the place of a path.
func (d *decoder) at(path string, t *token.Token) {
	if t != nil && t.Position != nil {
		d.places[path] = place{t.Position.Line, t.Position.Column}
	}
}

// locate gives problems of Check their places: that of their path, or of the nearest part around it that is written.
func (d *decoder) locate(ps Problems) Problems {
	for i := range ps {
		ps[i].File = d.file
		for path := ps[i].Path; ; path = path[:max(strings.LastIndexAny(path, ".["), 0)] {
			if at, ok := d.places[path]; ok {
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

// value decodes a node into v.
func (d *decoder) value(n ast.Node, path string, v reflect.Value) {
	if tag, ok := n.(*ast.TagNode); ok {
		d.fail(first(n), path, "leave it out", "a tag (%s) is not read here", messages.Line(tag.Start.Value, 40))
		return
	}
	switch n.(type) {
	case *ast.NullNode:
		d.fail(first(n), path, "leave the key out to have its default", "there is no value")
		return
	case *ast.AnchorNode, *ast.AliasNode:
		d.fail(first(n), path, "write it out", "anchors and aliases are not read here")
		return
	}
	switch {
	case v.Type() == durationType:
		d.duration(n, path, v)
	case v.Kind() == reflect.Struct:
		d.structure(n, path, v)
	case v.Kind() == reflect.Slice:
		d.sequence(n, path, v)
	case v.Kind() == reflect.Map:
		d.mapping(n, path, v)
	default:
		d.scalar(n, path, v)
	}
}

func (d *decoder) structure(n ast.Node, path string, v reflect.Value) {
	pairs, ok := d.pairs(n, path)
	if !ok {
		return
	}
	fields := fieldsOf(v.Type())
	for _, pair := range pairs {
		key, t := keyOf(pair)
		i, known := fields.index[key]
		if !known {
			d.fail(t, join(path, key), instead(key, fields.names), "the key %s is not known here", quote(key))
			continue
		}
		d.at(join(path, key), first(pair.Value))
		d.value(pair.Value, join(path, key), v.Field(i))
	}
}

func (d *decoder) mapping(n ast.Node, path string, v reflect.Value) {
	pairs, ok := d.pairs(n, path)
	if !ok {
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for _, pair := range pairs {
		key, _ := keyOf(pair)
		d.at(join(path, key), first(pair.Value))
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(pair.Value, join(path, key), item)
		v.SetMapIndex(reflect.ValueOf(key), item)
	}
}

// sequence reads a list. A list of words may be one word without the brackets.
func (d *decoder) sequence(n ast.Node, path string, v reflect.Value) {
	nodes := []ast.Node{n}
	if s, ok := n.(*ast.SequenceNode); ok {
		nodes = s.Values
	} else if _, ok := text(n); !ok || v.Type().Elem().Kind() != reflect.String {
		d.fail(first(n), path, "write each entry on a line of its own that begins with a dash", "a list is needed here")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(nodes), len(nodes)))
	for i, node := range nodes {
		at := fmt.Sprintf("%s[%d]", path, i)
		d.at(at, first(node))
		if w, ok := colonWord(node); ok && v.Type().Elem().Kind() == reflect.String {
			v.Index(i).SetString(w)
			continue
		}
		d.value(node, at, v.Index(i))
	}
}

func (d *decoder) duration(n ast.Node, path string, v reflect.Value) {
	s, ok := text(n)
	if !ok {
		d.fail(first(n), path, "write a number with its unit, such as 30s or 2m", "a duration is needed here")
		return
	}
	t, err := time.ParseDuration(s)
	if err != nil {
		d.fail(first(n), path, "write a number with its unit, such as 30s or 2m", "%s is no duration", quote(s))
		return
	}
	v.SetInt(int64(t))
}

func (d *decoder) scalar(n ast.Node, path string, v reflect.Value) {
	s, ok := text(n)
	if !ok {
		d.fail(first(n), path, "", "one value is needed here, not a list or a mapping")
		return
	}
	var err error
	want := ""
	switch v.Kind() {
	case reflect.String:
		v.SetString(s)
	case reflect.Bool:
		var b bool
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
		d.fail(first(n), path, "write "+want, "%s does not fit here", quote(s))
	}
}

// pairs are the keys and values of a mapping. The parser gives one of a single pair another type.
func (d *decoder) pairs(n ast.Node, path string) ([]*ast.MappingValueNode, bool) {
	var pairs []*ast.MappingValueNode
	switch m := n.(type) {
	case *ast.MappingNode:
		pairs = m.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{m}
	default:
		d.fail(first(n), path, "write key: value", "keys with values are needed here")
		return nil, false
	}
	for _, pair := range pairs {
		if pair.Key.IsMergeKey() {
			d.fail(pair.Key.GetToken(), path, "write it out", "merge keys (<<) are not read here")
			return nil, false
		}
	}
	return pairs, true
}

func keyOf(pair *ast.MappingValueNode) (string, *token.Token) {
	t := pair.Key.GetToken()
	return t.Value, t
}

// text is the value of a scalar as it is written, without quotes.
func text(n ast.Node) (string, bool) {
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

// colonWord is a word such as any:3 inside of brackets, which the parser takes for a key with a value. YAML wants a space
// after the colon of a key.
func colonWord(n ast.Node) (string, bool) {
	pair, ok := n.(*ast.MappingValueNode)
	if m, is := n.(*ast.MappingNode); is && len(m.Values) == 1 && !m.IsFlowStyle {
		pair, ok = m.Values[0], true
	}
	if !ok {
		return "", false
	}
	value, scalar := text(pair.Value)
	colon, after := pair.Start, pair.Value.GetToken()
	if !scalar || colon.Position.Line != after.Position.Line || after.Position.Column != colon.Position.Column+1 {
		return "", false
	}
	return pair.Key.GetToken().Value + ":" + value, true
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// fields are the keys of a struct, by their yaml tags.
type fields struct {
	names []string
	index map[string]int
}

func fieldsOf(t reflect.Type) fields {
	f := fields{index: map[string]int{}}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		f.names = append(f.names, name)
		f.index[name] = i
	}
	return f
}
