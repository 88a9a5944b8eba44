package foreign

import (
	"errors"
	"math"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
	"github.com/tailscale/hujson"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// maxYAMLDepth bounds brackets and dashes that open something in one line, because the parser recurses for each.
const maxYAMLDepth = 64

// maxYAMLValues bounds the values after aliases are unfolded: a few lines of nested aliases can stand for billions.
const maxYAMLValues = 1 << 16

// readYAML reads the first document of a YAML file into the tree of JSON. Bounds are checked on the text before the
// parser sees it.
func readYAML(file string, data []byte) (tree config.Tree, bad *config.Problem) {
	tree, bad = config.NewTree(file, data)
	if bad != nil {
		return tree, bad
	}
	fault := func(line, col int, text, fix string) *config.Problem {
		return clampProblem(tree, config.Problem{File: file, Line: max(line, 1), Col: max(col, 1), Text: text, Fix: fix})
	}
	// The three checks of the text bound what the parser recurses into and what takes quadratic time.
	if line, col := tooDeep(string(tree.Text())); line > 0 {
		return tree, fault(line, col, "too many brackets or dashes are open", "")
	}
	if strings.Count("\n"+string(tree.Text()), "\n---") > maxYAMLDocuments {
		return tree, fault(1, 1, "it holds more documents than can be read", "a file holds one")
	}
	if text := string(tree.Text()); strings.Count(text, ": ")+strings.Count(text, ":\n") > maxYAMLKeys {
		return tree, fault(1, 1, "it holds more keys than can be read", "split the file")
	}
	// The parser is young, and a panic on a strange file must not end the program.
	defer func() {
		if recover() != nil {
			bad = fault(1, 1, "the YAML parser gave up", "check the indentation")
		}
	}()
	f, err := parser.ParseBytes(tree.Text(), 0)
	if err != nil {
		line, col, text := 1, 1, "this is no YAML"
		var syntax yaml.Error
		if errors.As(err, &syntax) {
			// The library gives a position for most errors.
			if t := syntax.GetToken(); t != nil && t.Position != nil {
				line, col = t.Position.Line, t.Position.Column
			}
			text += ": " + messages.Line(withoutQuotes(syntax.GetMessage()), 120)
		}
		return tree, fault(line, col, text, "check the indentation and the quotes")
	}
	// A comment before the first key is a document of its own to the parser, and so is a directive, such as %YAML 1.2.
	var bodies []ast.Node
	for _, doc := range f.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.CommentType && doc.Body.Type() != ast.DirectiveType {
			bodies = append(bodies, doc.Body)
		}
	}
	y := &yamlReader{tree: tree, anchors: map[string]ast.Node{}}
	if len(bodies) == 0 {
		return tree, fault(1, 1, "the file is empty", "")
	}
	// A configuration is one document; further ones are ignored.
	tree.Root = y.toValue(bodies[0], 0, 0)
	// Beyond the bound the tree holds nulls, and must not be used.
	if y.values > maxYAMLValues {
		return tree, fault(1, 1, "its aliases unfold to more than can be read", "write them out")
	}
	return tree, nil
}

// tooDeep returns the first place where more is open in a line than maxYAMLDepth allows, or 0. It ignores quotes,
// because no line written by a person comes near the bound.
func tooDeep(s string) (line, col int) {
	depth := 0
	for text := range strings.Lines(s) {
		line++
		dashes := 0
		for i, c := range text {
			switch c {
			// Brackets may stay open over several lines.
			case '[', '{':
				depth++
			case ']', '}':
				depth = max(depth-1, 0)
			case '-', '?', ':':
				dashes++
			}
			if depth > maxYAMLDepth {
				return line, i + 1
			}
		}
		// Dashes and question marks open a level only at the beginning of a line.
		if trimmed := strings.TrimLeft(text, "-?: \t"); dashes > maxYAMLDepth && len(text)-len(trimmed) > 2*maxYAMLDepth &&
			strings.Count(text[:len(text)-len(trimmed)], "- ")+strings.Count(text[:len(text)-len(trimmed)], "? ") > maxYAMLDepth {
			return line, 1
		}
	}
	return 0, 0
}

// The parser's time grows with the square of the number of keys, and of documents. Text that looks like a key counts,
// too.
const (
	maxYAMLDocuments = 64
	maxYAMLKeys      = 8192
)

// yamlReader turns the nodes of one file into values.
type yamlReader struct {
	tree config.Tree
	// anchors maps the names of anchors to their nodes, as far as they have been met.
	anchors map[string]ast.Node
	// values counts the values made so far, against maxYAMLValues.
	values int
}

// offsetOf returns the byte offset of a token, or 0 if the library gives no position.
func (y *yamlReader) offsetOf(t *token.Token) int {
	if t == nil || t.Position == nil {
		return 0
	}
	return y.tree.Offset(config.Pos{Line: t.Position.Line, Col: t.Position.Column})
}

// toValue returns a node as JSON. at is the offset for nodes whose own token is no useful place: a mapping's token is
// its first colon, and the key above it is a better place. Beyond the bounds it returns null, and readYAML reports the
// file.
func (y *yamlReader) toValue(n ast.Node, at, depth int) hujson.Value {
	if y.values++; y.values > maxYAMLValues || depth > maxYAMLDepth || n == nil {
		return hujson.Value{Value: hujson.Literal("null"), StartOffset: at, EndOffset: at + 1}
	}
	// leaf returns a single value at the node's own token.
	leaf := func(l hujson.Literal) hujson.Value {
		at := y.offsetOf(n.GetToken())
		return hujson.Value{Value: l, StartOffset: at, EndOffset: at + 1}
	}
	switch n := n.(type) {
	case *ast.MappingNode:
		return y.toObject(n.Values, at, depth)
	case *ast.MappingValueNode:
		return y.toObject([]*ast.MappingValueNode{n}, at, depth)
	// Each element has a place of its own, for problems about it.
	case *ast.SequenceNode:
		a := &hujson.Array{}
		for _, el := range n.Values {
			a.Elements = append(a.Elements, y.toValue(el, y.offsetOf(firstToken(el)), depth+1))
		}
		return hujson.Value{Value: a, StartOffset: at, EndOffset: at + 1}
	// Anchors are met before their aliases, because YAML demands that order.
	case *ast.AnchorNode:
		y.anchors[n.Name.String()] = n.Value
		return y.toValue(n.Value, at, depth)
	// An alias inside its own anchor would recurse without end; depth bounds it.
	case *ast.AliasNode:
		to := y.anchors[n.Value.String()]
		// An alias without an anchor has no value.
		if to == nil {
			return leaf(hujson.Literal("null"))
		}
		return y.toValue(to, at, depth+1)
	// A tag such as !!str does not change how the value is read here.
	case *ast.TagNode:
		return y.toValue(n.Value, at, depth)
	case *ast.StringNode:
		return leaf(hujson.String(n.Value))
	// The text is a block; its own token is the sign that begins it.
	case *ast.LiteralNode:
		return hujson.Value{Value: hujson.String(n.Value.Value), StartOffset: at, EndOffset: at + 1}
	case *ast.BoolNode:
		return leaf(hujson.Bool(n.Value))
	case *ast.IntegerNode:
		return leaf(numberLiteral(n.GetToken().Value))
	case *ast.FloatNode:
		// JSON has no such numbers.
		if math.IsInf(n.Value, 0) || math.IsNaN(n.Value) {
			return leaf(hujson.String(n.GetToken().Value))
		}
		return leaf(numberLiteral(n.GetToken().Value))
	case *ast.NullNode:
		return leaf(hujson.Literal("null"))
	}
	return leaf(hujson.String(n.String()))
}

// toObject returns the object of a mapping. A merge key (<<) adds the members that are not there, and a key of the
// mapping itself replaces a merged one.
func (y *yamlReader) toObject(values []*ast.MappingValueNode, at, depth int) hujson.Value {
	o := &hujson.Object{}
	// there maps a name to the index of its member.
	there := map[string]int{}
	add := func(m hujson.ObjectMember) {
		there[nameOf(m)] = len(o.Members)
		o.Members = append(o.Members, m)
	}
	for _, m := range values {
		key := y.offsetOf(firstToken(m.Key))
		// Members of the merged mapping come in where the key stands.
		if _, merge := m.Key.(*ast.MergeKeyNode); merge {
			if from, ok := y.toValue(m.Value, key, depth+1).Value.(*hujson.Object); ok {
				for _, inherited := range from.Members {
					if _, ok := there[nameOf(inherited)]; !ok {
						add(inherited)
					}
				}
			}
			continue
		}
		// The token has the key without its quotes.
		name := m.Key.GetToken().Value
		v := y.toValue(m.Value, key, depth+1)
		// The mapping's own key wins over a merged one.
		if i, ok := there[name]; ok {
			o.Members[i].Value = v
			continue
		}
		add(newMember(name, key, v))
	}
	return hujson.Value{Value: o, StartOffset: at, EndOffset: at + 1}
}

// firstToken returns the token at which a node begins, because the own token of a mapping is its first colon.
func firstToken(n ast.Node) *token.Token {
	switch m := n.(type) {
	case nil:
		return nil
	case *ast.MappingNode:
		// A mapping in braces begins with its brace, which is its token.
		if !m.IsFlowStyle && len(m.Values) > 0 {
			return m.Values[0].Key.GetToken()
		}
	case *ast.MappingValueNode:
		return m.Key.GetToken()
	}
	return n.GetToken()
}
