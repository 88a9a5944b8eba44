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

// readTOML reads TOML into the tree of JSON. The library decodes the text once, which finds every fault of it (above
// all two tables of one name). A second pass with its low-level parser finds the places, which the decoder does not
// give.
func readTOML(file string, data []byte) (config.Tree, *config.Problem) {
	tree, bad := config.NewTree(file, data)
	if bad != nil {
		return tree, bad
	}
	// The library takes quadratic time on such text, and must not see it.
	if line, what := tooMany(string(tree.Text())); what != "" {
		return tree, &config.Problem{File: file, Line: line, Col: 1, Text: what, Fix: "split the file"}
	}
	// The decoded values are dropped: they have no places.
	var all map[string]any
	if err := toml.Unmarshal(tree.Text(), &all); err != nil {
		p := config.Problem{File: file, Line: 1, Col: 1, Text: "this is no TOML"}
		var d *toml.DecodeError
		if errors.As(err, &d) {
			// The library's text quotes the line, which may hold a secret.
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
		// The low-level parser gives the text as a sequence of headers and keys.
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
	// The decoder has accepted the same text, so that this is unexpected.
	if err := parser.Error(); err != nil {
		return tree, &config.Problem{File: file, Line: 1, Col: 1, Text: "this is no TOML"}
	}
	tree.Root = root.toValue()
	return tree, nil
}

// The library compares each key with all others of its table, and recurses for each part of a key.
const (
	maxTOMLKeys  = 8192
	maxTOMLParts = 256
)

// tooMany returns the first line with which a text has more keys, or more parts in a key, than readTOML accepts; what
// is empty if there is none. Signs inside strings count too, which no file written by a person notices.
func tooMany(s string) (line int, what string) {
	keys := 0
	for text := range strings.Lines(s) {
		line++
		// Counting is cheap, and runs before the library sees the text.
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

// clampProblem moves a place that a library gave into the text: some libraries point behind it.
func clampProblem(tree config.Tree, p config.Problem) *config.Problem {
	// A place beyond the text becomes its end, and a column beyond its line a later place.
	at := tree.Pos(tree.Offset(config.Pos{Line: p.Line, Col: p.Col}))
	p.Line, p.Col = at.Line, at.Col
	return &p
}

// withoutQuotes returns a library's sentence without the parts of the file that it quotes, which may be secrets. Quotes
// of up to four bytes stay, because they are signs of the syntax.
func withoutQuotes(s string) string {
	// Libraries quote with each of these signs.
	for _, quote := range []string{`"`, "`", "'"} {
		if before, rest, ok := strings.Cut(s, quote); ok {
			if i := strings.LastIndex(rest, quote); i > 4 {
				s = before + quote + "…" + rest[i:]
			}
		}
	}
	return s
}

// table is a table of TOML while it is filled. Either leaf, list or children counts; leaf wins over list.
type table struct {
	// offset is the place of the key, or 0 for the root.
	offset int
	// names keeps the order in which the keys stand first, which the map does not.
	names    []name
	children map[string]*table
	list     []*table
	leaf     *hujson.Value
}

// name is a key with the offset where it stands first.
type name struct {
	text   string
	offset int
}

// child returns the table under a key, and makes it if it is missing.
func (t *table) child(key *unstable.Node) *table {
	// A key that comes again keeps the offset of its first occurrence, at which the author looks for it.
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

// lastTable returns the table that a key refers to: of an array of tables the last element.
func (t *table) lastTable() *table {
	if len(t.list) > 0 {
		return t.list[len(t.list)-1]
	}
	return t
}

// tableBelow returns the table of a header [a.b.c].
func (t *table) tableBelow(keys unstable.Iterator) *table {
	for keys.Next() {
		// A header below an array of tables belongs to the array's last element.
		t = t.lastTable().child(keys.Node())
	}
	return t.lastTable()
}

// appendElement adds an element to the array of a header [[a.b.c]] and returns it.
func (t *table) appendElement(keys unstable.Iterator) *table {
	for keys.Next() {
		t = t.lastTable().child(keys.Node())
		// Only the last part of the key names the array; the parts before it name tables around it.
		if keys.IsLast() {
			t.list = append(t.list, &table{offset: t.offset})
		}
	}
	return t.lastTable()
}

// putValue adds one key, which may have dots, with its value. Inline tables become children, so that both ways to write
// a table give the same tree.
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
		// An empty inline table is an object and no missing value.
		if t.children == nil {
			t.children = map[string]*table{}
		}
		return
	}
	leaf := leafOf(v, t.offset)
	t.leaf = &leaf
}

// leafOf returns a value that is no table under a key. at is the offset of its key, for the kinds to which the parser
// gives no place.
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
	// Comments between the elements are nodes of their own.
	case unstable.Array:
		a := &hujson.Array{}
		for it := v.Children(); it.Next(); {
			switch n := it.Node(); n.Kind {
			case unstable.Comment:
			// A table in a list has no header; its members are collected as those of a header are.
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

// numberLiteral returns a number of TOML or YAML as JSON: without underscores, other bases and a plus sign. Infinity
// and other texts that are no JSON number become a string.
func numberLiteral(s string) hujson.Literal {
	plain := strings.TrimPrefix(strings.ReplaceAll(s, "_", ""), "+")
	if json.Valid([]byte(plain)) {
		return hujson.Literal(plain)
	}
	// Base 0 reads the prefixes 0x, 0o and 0b, which TOML and YAML have in common.
	if i, err := strconv.ParseInt(plain, 0, 64); err == nil {
		return hujson.Int(i)
	}
	return hujson.String(s)
}

// toValue returns the finished table as a JSON value.
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
	// The members stand in the order of the text, as those of JSON do.
	for _, n := range t.names {
		o.Members = append(o.Members, newMember(n.text, n.offset, t.children[n.text].toValue()))
	}
	return hujson.Value{Value: o, StartOffset: t.offset, EndOffset: t.offset + 1}
}
