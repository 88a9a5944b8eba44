package scenario

import (
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/mcpvisor/mcpvisor/messages"
)

// MaxFile bounds the text of a scenario in bytes: far beyond what a person writes, and what a shrunk one needs.
const MaxFile = 4 << 20

// Parse reads a scenario from the text of a YAML file. file is only for the errors, which are Problems: each says
// file:line:column, what is wrong and what to do, and all that can be told are told at once. A key that is not known is an
// error. What Parse returns has passed Check.
func Parse(file string, text []byte) (Scenario, error) {
	s, _, err := parseFile(file, text)
	return s, err
}

// Vet is Parse, and tells also what only planning finds, such as a server that is not there, with its place. A scenario
// that names its tiers must be such that it can be planned in each of them; one that names none, in one of them. If tiers are
// given, because it is about to be run, it must be such that it can be planned in these.
func Vet(file string, text []byte, tiers ...Tier) (Scenario, error) {
	s, d, err := parseFile(file, text)
	if err != nil {
		return s, err
	}
	anyTier := len(tiers) == 0 && len(s.Tiers) == 0
	if len(tiers) == 0 {
		tiers = s.Tiers
	}
	if anyTier {
		tiers = Tiers
	}
	var first error
	for _, tier := range tiers {
		_, err := s.Plan(0, tier)
		if err == nil && anyTier {
			return s, nil
		}
		if first == nil {
			first = err
		}
	}
	var ps Problems
	if errors.As(first, &ps) {
		return Scenario{}, d.locateProblems(ps).inFileOrder()
	}
	return s, first
}

func parseFile(file string, text []byte) (Scenario, *decoder, error) {
	d := &decoder{file: file, positions: map[string]position{}}
	var s Scenario
	root, problem := d.parseTree(text)
	if problem != nil {
		return Scenario{}, d, Problems{*problem}
	}
	d.recordPosition("", firstToken(root))
	d.decodeValue(root, "", reflect.ValueOf(&s).Elem())
	if len(d.list) > 0 { // what was not understood must not be judged
		return Scenario{}, d, d.list.inFileOrder()
	}
	if err := s.Check(); err != nil {
		var ps Problems
		if !errors.As(err, &ps) {
			return Scenario{}, d, err
		}
		return Scenario{}, d, d.locateProblems(ps).inFileOrder()
	}
	return s, d, nil
}

// parseTree makes the tree of the only document of the file.
func (d *decoder) parseTree(text []byte) (root ast.Node, problem *Problem) {
	whole := func(what, do string) *Problem { return &Problem{File: d.file, Line: 1, Column: 1, What: what, Do: do} }
	if len(text) > MaxFile {
		return nil, whole(fmt.Sprintf("a scenario of %d bytes is too long", len(text)), fmt.Sprintf("keep it below %d", MaxFile))
	}
	defer func() { // the parser has met fewer files than there are
		if r := recover(); r != nil {
			root, problem = nil, whole("the YAML parser gave up: "+messages.Line(fmt.Sprint(r), 200), "check the indentation")
		}
	}()
	f, err := parser.ParseBytes(text, 0)
	if err != nil {
		p := whole("", "check the indentation and the quotes")
		p.What = messages.Line(err.Error(), 200)
		var syntax yaml.Error
		if errors.As(err, &syntax) {
			p.What = "this is no YAML: " + messages.Line(syntax.GetMessage(), 200)
			if t := syntax.GetToken(); t != nil && t.Position != nil {
				p.Line, p.Column = t.Position.Line, t.Position.Column
			}
		}
		return nil, p
	}
	var bodies []ast.Node
	for _, doc := range f.Docs {
		if doc.Body != nil && doc.Body.Type() != ast.CommentType {
			bodies = append(bodies, doc.Body)
		}
	}
	switch len(bodies) {
	case 0:
		return nil, whole("there is nothing in it", "begin with name: and servers:")
	case 1:
		return bodies[0], nil
	}
	p := whole("there is more than one document in it", "write each scenario into a file of its own")
	if t := firstToken(bodies[1]); t != nil && t.Position != nil {
		p.Line, p.Column = t.Position.Line, t.Position.Column
	}
	return nil, p
}

// firstToken is where a tree begins. A mapping's own token is its first colon.
func firstToken(n ast.Node) *token.Token {
	switch m := n.(type) {
	case *ast.MappingNode:
		if !m.IsFlowStyle && len(m.Values) > 0 {
			return m.Values[0].Key.GetToken()
		}
	case *ast.MappingValueNode:
		return m.Key.GetToken()
	}
	return n.GetToken()
}

// YAML writes the scenario so that Parse reads it. What has its default is left out.
func (s Scenario) YAML() []byte {
	b, err := yaml.MarshalWithOptions(s, yaml.IndentSequence(true), yaml.AutoInt(),
		yaml.CustomMarshaler(func(d messages.Duration) ([]byte, error) { return []byte(shortDuration(d)), nil }))
	if err != nil { // the types have nothing that cannot be written
		return []byte("# this scenario cannot be written: " + messages.Line(err.Error(), 200) + "\n")
	}
	return quotedOnPattern().ReplaceAll(b, []byte("${1}on:"))
}

// quotedOnPattern is the key on as the YAML library writes it, for the sake of readers of YAML 1.1, where on is true. It makes a
// scenario that a person is to read and change look stranger than it is.
var quotedOnPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^( *(?:- )?)"on":`) })

// shortDuration is a duration as a person writes it: 5m, not 5m0s.
func shortDuration(d messages.Duration) string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}
