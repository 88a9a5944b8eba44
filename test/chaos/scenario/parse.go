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

// MaxFile bounds the text of a scenario in bytes, far above the files that people and the shrinker write.
const MaxFile = 4 << 20

// Parse reads a scenario from the text of a YAML file. file appears only in the errors, which are Problems: each says
// file:line:column, what is wrong and what to do, and all problems that can be found are reported at once. An unknown
// key is an error. The returned scenario has passed Check.
func Parse(file string, text []byte) (Scenario, error) {
	s, _, err := parseFile(file, text)
	return s, err
}

// Vet does the work of Parse, and also reports with their places the problems that only planning finds, such as a
// server that does not exist. A scenario that names its tiers must be plannable in each of them; one that names none,
// in one of them. If tiers are given, because it is about to be run, it must be plannable in these.
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

// parseFile returns the decoder as well, which knows the places of the problems that planning finds later.
func parseFile(file string, text []byte) (Scenario, *decoder, error) {
	d := &decoder{file: file, positions: map[string]position{}}
	var s Scenario
	root, problem := d.parseTree(text)
	if problem != nil {
		return Scenario{}, d, Problems{*problem}
	}
	d.recordPosition("", firstToken(root))
	d.decodeValue(root, "", reflect.ValueOf(&s).Elem())
	// Check would report missing values where a value could not be read.
	if len(d.list) > 0 {
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

// parseTree returns the tree of the only document of the file.
func (d *decoder) parseTree(text []byte) (root ast.Node, problem *Problem) {
	whole := func(what, do string) *Problem { return &Problem{File: d.file, Line: 1, Column: 1, What: what, Do: do} }
	if len(text) > MaxFile {
		return nil, whole(fmt.Sprintf("a scenario of %d bytes is too long", len(text)), fmt.Sprintf("keep it below %d", MaxFile))
	}
	// The parser is young, and a panic on a strange file must become a problem of that file.
	defer func() {
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

// firstToken returns the token at which a tree begins, because the own token of a mapping is its first colon.
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

// YAML returns the scenario in the form that Parse reads. Values that equal their defaults are left out.
func (s Scenario) YAML() []byte {
	b, err := yaml.MarshalWithOptions(s, yaml.IndentSequence(true), yaml.AutoInt(),
		yaml.CustomMarshaler(func(d messages.Duration) ([]byte, error) { return []byte(shortDuration(d)), nil }))
	// The types have no value that the library cannot write.
	if err != nil {
		return []byte("# this scenario cannot be written: " + messages.Line(err.Error(), 200) + "\n")
	}
	return quotedOnPattern().ReplaceAll(b, []byte("${1}on:"))
}

// quotedOnPattern matches the key on in quotes. The YAML library quotes it for readers of YAML 1.1, where on means
// true; a scenario that a person reads and changes is clearer without them.
var quotedOnPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^( *(?:- )?)"on":`) })

// shortDuration returns a duration as a person writes it: 5m, not 5m0s.
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
