package scenario_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	faults "github.com/mcpvisor/mcpvisor/transports/fault"
)

var update = flag.Bool("update", false, "write schema.json as the types and the catalogue are now: read the difference")

func TestTheSchemaIsThatOfTheTypes(t *testing.T) {
	g := generator{docs: readDocs(t)}
	root := g.object(reflect.TypeFor[scenario.Scenario]())
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "A scenario of mcpvisor chaos"
	root["required"] = []string{"name", "servers"}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(root); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("schema.json", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(b.Bytes(), scenario.Schema()) {
		t.Error("schema.json is not that of the types and faults any more; write it again with: go test ./test/chaos/scenario -update")
	}
}

// What Parse takes the schema takes as well, and a key or a word that is not known is wrong for both.
func TestTheSchemaAgreesWithParse(t *testing.T) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(scenario.Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	validate := func(text []byte) error {
		j, err := yaml.YAMLToJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(j))
		if err != nil {
			t.Fatal(err)
		}
		return compiled.Validate(v)
	}
	for _, s := range scenario.Library() {
		text, _ := scenario.Text(s.Name)
		if err := validate([]byte(text)); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
		if err := validate(s.YAML()); err != nil {
			t.Errorf("%s, written: %v", s.Name, err)
		}
	}
	for _, name := range []string{"keys", "words", "shapes", "parameters", "nothing"} {
		text, err := os.ReadFile(filepath.Join("testdata", "wrong", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		if validate(text) == nil {
			t.Errorf("%s is nothing that the schema finds wrong", name)
		}
	}
}

// generator makes the schema of types.
type generator struct {
	docs map[string]map[string]string // by type and field
}

func (g generator) object(t reflect.Type) map[string]any {
	properties := map[string]any{}
	for i := range t.NumField() {
		f := t.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		p := g.schema(t.Name(), f)
		if doc := cmp.Or(g.docs[t.Name()][f.Name], g.docs[f.Type.Name()][""]); doc != "" {
			p["description"] = doc
		}
		properties[key] = p
	}
	out := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	switch t {
	case reflect.TypeFor[scenario.Group]():
		out["required"] = []string{"name"}
	case reflect.TypeFor[scenario.Command]():
		out["required"] = []string{"do"}
	case reflect.TypeFor[scenario.Fault]():
		out["required"] = []string{"fault"}
		out["allOf"] = parametersOfEach()
	}
	return out
}

// words are the fields that take one of some words.
var words = map[string][]string{
	"Scenario.Tiers": texts(scenario.Tiers), "Scenario.Invariants": scenario.Invariants,
	"Scenario.Sometimes": sorted(scenario.Occasions),
	"Group.Kind":         texts(scenario.Kinds), "Group.Era": texts(scenario.Eras),
	"Group.Connect": {string(messages.Eager), string(messages.Lazy)}, "Command.Do": sorted(scenario.Commands),
	"Fault.Fault": names(), "Load.Read": scenario.Reads, "Group.Tasks": {scenario.TasksOptional, scenario.TasksRequired},
}

func (g generator) schema(owner string, f reflect.StructField) map[string]any {
	known := words[owner+"."+f.Name]
	switch {
	case f.Type == reflect.TypeFor[messages.Duration]():
		return map[string]any{"type": "string", "pattern": `^(0|([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+)$`}
	case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct:
		return map[string]any{"type": "array", "items": g.object(f.Type.Elem())}
	case f.Type.Kind() == reflect.Slice:
		one := word(known)
		return map[string]any{"anyOf": []any{one, map[string]any{"type": "array", "items": one}}}
	case f.Type.Kind() == reflect.Struct:
		return g.object(f.Type)
	case f.Type.Kind() == reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": scalar()}
	case f.Type.Kind() == reflect.Bool:
		return map[string]any{"type": "boolean"}
	case f.Type.Kind() == reflect.Float64:
		return map[string]any{"type": "number", "minimum": 0}
	case f.Type.Kind() == reflect.Int, f.Type.Kind() == reflect.Uint64:
		return map[string]any{"type": "integer", "minimum": 0}
	}
	return word(known)
}

func word(known []string) map[string]any {
	out := map[string]any{"type": "string"}
	if known != nil {
		out["enum"] = known
	}
	return out
}

// scalar returns the schema of a parameter: it is read as text, and written without quotes.
func scalar() map[string]any { return map[string]any{"type": []string{"string", "number", "boolean"}} }

// parametersOfEach ties the keys below with to the name of the fault.
func parametersOfEach() (out []any) {
	for _, k := range faults.Kinds() {
		if len(scenario.TiersOf(k)) == 0 {
			continue
		}
		properties := map[string]any{}
		for _, p := range k.ParamsAt(faults.Sim) {
			one := scalar()
			if p.Words != nil {
				one = map[string]any{"enum": written(p.Words)}
			}
			one["description"] = p.Does
			if p.Default != "" {
				one["default"] = p.Default
			}
			properties[p.Name] = one
		}
		out = append(out, map[string]any{
			"if": map[string]any{"properties": map[string]any{"fault": map[string]any{"const": k.Name}}},
			"then": map[string]any{"description": k.Does, "properties": map[string]any{
				"with": map[string]any{"properties": properties, "additionalProperties": false},
			}},
		})
	}
	return out
}

// written are words as YAML may have them: one that looks like a number is one there, unless it stands in quotes.
func written(words []string) (out []any) {
	for _, w := range words {
		out = append(out, w)
		if n, err := strconv.Atoi(w); err == nil {
			out = append(out, n)
		}
	}
	return out
}

func names() (out []string) {
	for _, k := range faults.Kinds() {
		if len(scenario.TiersOf(k)) > 0 {
			out = append(out, k.Name)
		}
	}
	return out
}

func texts[T ~string](list []T) (out []string) {
	for _, w := range list {
		out = append(out, string(w))
	}
	return out
}

func sorted(m map[string]string) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// readDocs reads the comments of the fields. One comment may be about several fields that follow each other: it counts for
// those that it names.
func readDocs(t *testing.T) map[string]map[string]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "scenario.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	docs := map[string]map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		if d, ok := n.(*ast.GenDecl); ok && d.Tok == token.TYPE && d.Doc != nil { // of a type that is no struct
			docs[d.Specs[0].(*ast.TypeSpec).Name.Name] = map[string]string{"": strings.Join(strings.Fields(d.Doc.Text()), " ")}
		}
		spec, ok := n.(*ast.TypeSpec)
		if !ok {
			return true
		}
		fields, ok := spec.Type.(*ast.StructType)
		if !ok {
			return true
		}
		byType, last := map[string]string{}, ""
		for _, f := range fields.Fields.List {
			text := strings.Join(strings.Fields(f.Doc.Text()+" "+f.Comment.Text()), " ")
			if f.Doc != nil {
				last = text
			}
			for _, name := range f.Names {
				switch {
				case text != "":
					byType[name.Name] = text
				case strings.Contains(last, name.Name):
					byType[name.Name] = last
				}
			}
		}
		docs[spec.Name.Name] = byType
		return true
	})
	return docs
}
