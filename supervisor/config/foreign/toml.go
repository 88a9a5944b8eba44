package foreign

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
	"github.com/tailscale/hujson"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// readTOML reads TOML into the tree of JSON. The library decodes the text once, which finds every fault of it (two tables
// of one name above all), and is asked for its places in a second pass.
func readTOML(file string, data []byte) (config.Tree, *config.Problem) {
	tree, bad := config.NewTree(file, data)
	if bad != nil {
		return tree, bad
	}
	if line, what := tooMany(string(tree.Text())); what != "" {
		return tree, &config.Problem{File: file, Line: line, Col: 1, Text: what, Fix: "split the file"}
	}
	var all map[string]any
	if err := toml.Unmarshal(tree.Text(), &all); err != nil {
		p := config.Problem{File: file, Line: 1, Col: 1, Text: "this is no TOML"}
		var d *toml.DecodeError
		if errors.As(err, &d) {
			p.Line, p.Col = d.Position()
			p.Text += ": " + messages.Line(withoutQuotes(strings.TrimPrefix(d.Error(), "toml: ")), 120)
		}
		return tree, clampProblem(tree, p)
	}
	root := &table{offset: 0}
	current := root
	var parser unstable.Parser
	parser.Reset(tree.Text())
	for parser.NextExpression() {
		switch e := parser.Expression(); e.Kind {
		case unstable.Table:
			current = root.tableBelow(e.Key())
		case unstable.ArrayTable:
			current = root.appendElement(e.Key())
		case unstable.KeyValue:
			current.putValue(e)
		default: // comments
		}
	}
	if err := parser.Error(); err != nil { // the text was decoded without one
		return tree, &config.Problem{File: file, Line: 1, Col: 1, Text: "this is no TOML"}
	}
	tree.Root = root.toValue()
	return tree, nil
}

// The library compares each key with all others of its table, and calls itself for each part of a key.
const (
	maxTOMLKeys  = 8192
	maxTOMLParts = 256
)

// tooMany is the first line with which a text has more keys, or more parts in a key, than are read; what is empty if there is none.
// Signs in texts count too: no file that a person wrote comes near.
func tooMany(s string) (line int, what string) {
	keys := 0
	for text := range strings.Lines(s) {
		line++
		keys += strings.Count(text, "=")
		head, _, _ := strings.Cut(text, "=")
		switch {
		case keys > maxTOMLKeys:
			return line, "the file has more keys than can be read"
		case strings.Count(head, ".") > maxTOMLParts && !strings.Contains(head, " "):
			return line, "a key has more parts than can be read"
		}
	}
	return 0, ""
}

// clampProblem moves a place that a library gave into the text.
func clampProblem(tree config.Tree, p config.Problem) *config.Problem {
	at := tree.Pos(tree.Offset(config.Pos{Line: p.Line, Col: p.Col}))
	p.Line, p.Col = at.Line, at.Col
	return &p
}

// withoutQuotes is a library's sentence without what it quotes of the file, which may be a secret.
func withoutQuotes(s string) string {
	for _, quote := range []string{`"`, "`", "'"} {
		if before, rest, ok := strings.Cut(s, quote); ok {
			if i := strings.LastIndex(rest, quote); i > 4 {
				s = before + quote + "…" + rest[i:]
			}
		}
	}
	return s
}

// table is a table of TOML while it is filled. Exactly one of leaf, list and the members counts.
type table struct {
	offset   int
	names    []name
	children map[string]*table
	list     []*table
	leaf     *hujson.Value
}

// name is a key where it stands first.
type name struct {
	text   string
	offset int
}

// child is the table under a key; it is made if it is missing.
func (t *table) child(key *unstable.Node) *table {
	s, at := string(key.Data), int(key.Raw.Offset)
	if t.children == nil {
		t.children = map[string]*table{}
	}
	if t.children[s] == nil {
		t.children[s] = &table{offset: at}
		t.names = append(t.names, name{s, at})
	}
	return t.children[s]
}

// lastTable is the table that a key refers to: of an array of tables the last one.
func (t *table) lastTable() *table {
	if len(t.list) > 0 {
		return t.list[len(t.list)-1]
	}
	return t
}

func (t *table) tableBelow(keys unstable.Iterator) *table {
	for keys.Next() {
		t = t.lastTable().child(keys.Node())
	}
	return t.lastTable()
}

func (t *table) appendElement(keys unstable.Iterator) *table {
	for keys.Next() {
		t = t.lastTable().child(keys.Node())
		if keys.IsLast() {
			t.list = append(t.list, &table{offset: t.offset})
		}
	}
	return t.lastTable()
}

// putValue adds one key with its value.
func (t *table) putValue(kv *unstable.Node) {
	keys := kv.Key()
	for keys.Next() {
		t = t.lastTable().child(keys.Node())
	}
	v := kv.Value()
	if v.Kind == unstable.InlineTable {
		for it := v.Children(); it.Next(); {
			if n := it.Node(); n.Kind == unstable.KeyValue {
				t.putValue(n)
			}
		}
		if t.children == nil {
			t.children = map[string]*table{}
		}
		return
	}
	leaf := leafOf(v, t.offset)
	t.leaf = &leaf
}

// leafOf is a value that is no table under a key. at is where its key stands, for the kinds whose own place is not told.
func leafOf(v *unstable.Node, at int) hujson.Value {
	out := hujson.Value{StartOffset: at, EndOffset: at + 1}
	if v.Raw.Length > 0 {
		out.StartOffset, out.EndOffset = int(v.Raw.Offset), int(v.Raw.Offset+v.Raw.Length)
	}
	data := string(v.Data)
	switch v.Kind {
	case unstable.String:
		out.Value = hujson.String(data)
	case unstable.Bool:
		out.Value = hujson.Bool(data == "true")
	case unstable.Integer, unstable.Float:
		out.Value = numberLiteral(data)
	case unstable.Array:
		a := &hujson.Array{}
		for it := v.Children(); it.Next(); {
			switch n := it.Node(); n.Kind {
			case unstable.Comment:
			case unstable.InlineTable:
				t := &table{offset: int(n.Raw.Offset)}
				for members := n.Children(); members.Next(); {
					if m := members.Node(); m.Kind == unstable.KeyValue {
						t.putValue(m)
					}
				}
				a.Elements = append(a.Elements, t.toValue())
			default:
				a.Elements = append(a.Elements, leafOf(n, out.StartOffset))
			}
		}
		out.Value = a
	default: // dates and times
		out.Value = hujson.String(data)
	}
	return out
}

// numberLiteral is a number of TOML in JSON: without the underscores, other bases and signs that JSON does not know. Infinity and
// what is no number stay a text.
func numberLiteral(s string) hujson.Literal {
	plain := strings.TrimPrefix(strings.ReplaceAll(s, "_", ""), "+")
	if json.Valid([]byte(plain)) {
		return hujson.Literal(plain)
	}
	if i, err := strconv.ParseInt(plain, 0, 64); err == nil {
		return hujson.Int(i)
	}
	return hujson.String(s)
}

func (t *table) toValue() hujson.Value {
	switch {
	case t.leaf != nil:
		return *t.leaf
	case t.list != nil:
		a := &hujson.Array{}
		for _, el := range t.list {
			a.Elements = append(a.Elements, el.toValue())
		}
		return hujson.Value{Value: a, StartOffset: t.offset, EndOffset: t.offset + 1}
	}
	o := &hujson.Object{}
	for _, n := range t.names {
		o.Members = append(o.Members, newMember(n.text, n.offset, t.children[n.text].toValue()))
	}
	return hujson.Value{Value: o, StartOffset: t.offset, EndOffset: t.offset + 1}
}
