package headers

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestMirrorOf goes through the constraints of 2026-07-28, Custom Headers from Tool Parameters, Schema Extension.
func TestMirrorOf(t *testing.T) {
	property := func(schema string) string { return `{"type":"object","properties":{"a":` + schema + `}}` }
	annotated := func(kind, name string) string {
		return property(fmt.Sprintf(`{"type":%s,"x-mcp-header":%s}`, kind, name))
	}
	for _, test := range []struct{ name, schema, problem string }{
		{"nothing", `{"type":"object"}`, ""},
		{"a string", annotated(`"string"`, `"Region"`), ""},
		{"an integer", annotated(`"integer"`, `"Region"`), ""},
		{"a boolean", annotated(`"boolean"`, `"Region"`), ""},
		{"a string or null", annotated(`["string","null"]`, `"Region"`), ""},
		{"every character of a token", annotated(`"string"`, "\"aZ09!#$%&'*+-.^_`|~\""), ""},
		{"inside an object", property(`{"type":"object","properties":{"b":{"type":"string","x-mcp-header":"B"}}}`), ""},
		{"a property of that name", `{"properties":{"x-mcp-header":{"type":"string"}}}`, ""},
		{"a property called items", `{"properties":{"items":{"type":"string","x-mcp-header":"I"}}}`, ""},
		{
			"data that looks like one",
			property(`{"type":"object","default":{"x-mcp-header":""},"enum":[{"x-mcp-header":1}]}`), "",
		},
		{"a keyword with escapes", property(`{"type":"number","x-mcp\u002dheader":"N"}`), "no string"},

		{"MUST NOT be empty", annotated(`"string"`, `""`), "is empty"},
		{"not a string", annotated(`"string"`, `5`), "not a string"},
		{"null", annotated(`"string"`, `null`), "not a string"},
		{"a space", annotated(`"string"`, `"My Region"`), "cannot be part"},
		{"a colon", annotated(`"string"`, `"Region:Primary"`), "cannot be part"},
		{"not ASCII", annotated(`"string"`, `"Région"`), "cannot be part"},
		{"a tab", annotated(`"string"`, `"Region\t1"`), "cannot be part"},
		{"a line break", annotated(`"string"`, `"Region\r\nX: y"`), "cannot be part"},
		{"a number", annotated(`"number"`, `"N"`), "no string, integer or boolean"},
		{"an object", annotated(`"object"`, `"N"`), "no string, integer or boolean"},
		{"an array", annotated(`"array"`, `"N"`), "no string, integer or boolean"},
		{"only null", annotated(`"null"`, `"N"`), "no string, integer or boolean"},
		{"null alone in a list", annotated(`["null"]`, `"N"`), "no string, integer or boolean"},
		{"a number or a string", annotated(`["number","string"]`, `"N"`), "no string, integer or boolean"},
		{"no type", property(`{"x-mcp-header":"N"}`), "no string, integer or boolean"},
		{
			"twice", `{"properties":{"a":{"type":"string","x-mcp-header":"R"},"b":{"type":"string","x-mcp-header":"R"}}}`,
			"stands twice",
		},
		{
			"twice in different case",
			`{"properties":{"a":{"type":"string","x-mcp-header":"MyField"},"b":{"type":"string","x-mcp-header":"myfield"}}}`,
			"stands twice",
		},
		{"at the root", `{"type":"string","x-mcp-header":"R"}`, "no chain of properties"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, problem := ReadSchema([]byte(test.schema))
			if (problem == "") != (test.problem == "") || !strings.Contains(problem, test.problem) {
				t.Errorf("%s: %q, want %q", test.schema, problem, test.problem)
			}
		})
	}
}

// TestMirrorOfUnreachable: "An x-mcp-header annotation anywhere else makes the annotation — and thus the tool
// definition — invalid."
func TestMirrorOfUnreachable(t *testing.T) {
	const annotated = `{"properties":{"a":{"type":"string","x-mcp-header":"R"}}}`
	for _, form := range []string{
		`{"items":%s}`, `{"items":[%s]}`, `{"prefixItems":[%s]}`, `{"contains":%s}`, `{"additionalProperties":%s}`,
		`{"oneOf":[%s]}`, `{"anyOf":[{},%s]}`, `{"allOf":[%s]}`, `{"not":%s}`, `{"if":%s}`, `{"then":%s}`, `{"else":%s}`,
		`{"$defs":{"d":%s}}`, `{"definitions":{"d":%s}}`, `{"patternProperties":{"^x":%s}}`, `{"dependentSchemas":{"d":%s}}`,
		`{"properties":{"list":{"type":"array","items":%s}}}`,
	} {
		schema := fmt.Sprintf(form, annotated)
		if _, problem := ReadSchema([]byte(schema)); !strings.Contains(problem, "no chain of properties") {
			t.Errorf("%s: %q", schema, problem)
		}
	}
}

// TestMirrorHeader goes through the table of Client Behavior and the examples of Value Encoding.
func TestMirrorHeader(t *testing.T) {
	m, problem := ReadSchema([]byte(`{"properties":{
		"region":{"type":"string","x-mcp-header":"Region"},
		"count":{"type":["integer","null"],"x-mcp-header":"Count"},
		"deep":{"properties":{"flag":{"type":"boolean","x-mcp-header":"Method"}}},
		"query":{"type":"string"}}}`))
	if problem != "" {
		t.Fatal(problem)
	}
	for _, test := range []struct {
		args string
		want map[string]string
	}{
		{``, nil},
		{`{}`, nil},
		{` {"query":"SELECT 1"}`, nil},
		{`{"region":"us-west1"}`, map[string]string{"Mcp-Param-Region": "us-west1"}},
		{`{"region":""}`, map[string]string{"Mcp-Param-Region": ""}},
		{`{"region":null,"count":null,"deep":null}`, nil},
		{`{"region":{"a":1},"count":[1],"deep":"no object"}`, nil},
		{`{"region":"us west 1"}`, map[string]string{"Mcp-Param-Region": "us west 1"}},
		{`{"region":"Hello, 世界"}`, map[string]string{"Mcp-Param-Region": "=?base64?SGVsbG8sIOS4lueVjA==?="}},
		{`{"region":"Hello, \u4e16\u754c"}`, map[string]string{"Mcp-Param-Region": "=?base64?SGVsbG8sIOS4lueVjA==?="}},
		{`{"region":" padded "}`, map[string]string{"Mcp-Param-Region": "=?base64?IHBhZGRlZCA=?="}},
		{`{"region":"line1\nline2"}`, map[string]string{"Mcp-Param-Region": "=?base64?bGluZTEKbGluZTI=?="}},
		{`{"region":"=?base64?literal?="}`, map[string]string{"Mcp-Param-Region": "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="}},
		{`{"count":42}`, map[string]string{"Mcp-Param-Count": "42"}},
		{`{"count":-7}`, map[string]string{"Mcp-Param-Count": "-7"}},
		{`{"count":42.0}`, map[string]string{"Mcp-Param-Count": "42"}},
		{`{"count":1e3}`, map[string]string{"Mcp-Param-Count": "1000"}},
		{`{"count":9007199254740993}`, map[string]string{"Mcp-Param-Count": "9007199254740993"}},
		{`{"count":1.5}`, map[string]string{"Mcp-Param-Count": "1.5"}},
		{`{"deep":{"flag":true}}`, map[string]string{"Mcp-Param-Method": "true"}},
		{`{"deep":{"flag":false},"flag":true}`, map[string]string{"Mcp-Param-Method": "false"}},
		{`{"region":"a","region":"b"}`, map[string]string{"Mcp-Param-Region": "b"}},
	} {
		if got, _ := m.Values([]byte(test.args)); !maps.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.args, got, test.want)
		}
	}
}

// FuzzMirror checks that no schema and no arguments lead to a header that HTTP cannot carry.
func FuzzMirror(f *testing.F) {
	f.Add(`{"properties":{"a":{"type":"string","x-mcp-header":"R"}}}`, `{"a":"x\r\ny"}`)
	f.Add(`{"properties":{"a":{"type":["integer","null"],"x-mcp-header":"\u0052"}},"$defs":{}}`, `{"a":1e3}`)
	f.Add(`{"items":[{"x-mcp-header":1}]}`, `{}`)
	f.Fuzz(func(t *testing.T, schema, args string) {
		if !json.Valid([]byte(schema)) || !json.Valid([]byte(args)) {
			t.Skip("neither is handed to it before it was scanned")
		}
		m, problem := ReadSchema([]byte(strings.TrimSpace(schema)))
		if problem != "" && m != nil {
			t.Errorf("both %v and %q", m, problem)
		}
		header, _ := m.Values([]byte(args))
		for name, value := range header {
			rest, ok := strings.CutPrefix(name, "Mcp-Param-")
			if !ok || !isToken(rest) {
				t.Errorf("header %q", name)
			}
			for i := range len(value) {
				if value[i] < ' ' || value[i] > '~' {
					t.Errorf("value %q", value)
				}
			}
		}
	})
}

// TestMirrorOfDeepSchema guards against a bug: each level of a schema was read as often as it is deep, so a
// definition within all other bounds took seconds. Levels beyond the bound are not read, and an annotation in them is
// invalid.
func TestMirrorOfDeepSchema(t *testing.T) {
	deep := func(levels int, inner string) []byte {
		return []byte(strings.Repeat(`{"properties":{"a":`, levels) + inner + strings.Repeat(`}}`, levels))
	}
	const annotated = `{"type":"string","x-mcp-header":"R"}`
	if m, problem := ReadSchema(deep(maxSchemaDepth-1, annotated)); problem != "" || len(m) != 1 {
		t.Errorf("the deepest one allowed: %v, %q", m, problem)
	}
	for _, levels := range []int{maxSchemaDepth, 4000} {
		if m, problem := ReadSchema(deep(levels, annotated)); !strings.Contains(problem, "too deep") || len(m) != 0 {
			t.Errorf("%d levels: %v, %q", levels, m, problem)
		}
	}
	if m, problem := ReadSchema(deep(4000, `{"description":"\u0041"}`)); problem != "" || len(m) != 0 {
		t.Errorf("a deep schema without annotations: %v, %q", m, problem)
	}
}

// TestMirrorOfLongName guards against a bug: the reason repeated the whole name.
func TestMirrorOfLongName(t *testing.T) {
	long := strings.Repeat("x", 1000)
	for _, schema := range []string{
		`{"properties":{"a":{"type":"number","x-mcp-header":"` + long + `"}}}`,
		`{"properties":{"a":{"type":"string","x-mcp-header":"` + long + `"},"b":{"type":"string","x-mcp-header":"` + long + `"}}}`,
	} {
		if _, problem := ReadSchema([]byte(schema)); problem == "" || len(problem) > 200 {
			t.Errorf("the reason has %d bytes", len(problem))
		}
	}
}

// TestFindMismatch goes through the table of 2026-07-28, Server Behavior for Custom Headers.
func TestFindMismatch(t *testing.T) {
	params, problem := ReadSchema([]byte(`{"properties":{"s":{"type":"string","x-mcp-header":"S"},"n":{"type":["integer","null"],"x-mcp-header":"N"},
		"b":{"type":"boolean","x-mcp-header":"B"},"in":{"type":"object","properties":{"x":{"type":"string","x-mcp-header":"X"}}}}}`))
	if problem != "" || len(params) != 4 {
		t.Fatal(params, problem)
	}
	for _, test := range []struct{ name, args, headers, want string }{
		{"nothing", `{}`, "", ""},
		{"no arguments", ``, "", ""},
		{"all", `{"s":"a","n":-7,"b":true,"in":{"x":"y"}}`, "S: a|N: -7|B: true|X: y", ""},
		{"one that nothing names", `{"s":"a"}`, "S: a|Other: z", ""},
		{"missing", `{"s":"a"}`, "", "S"},
		{"missing, inside", `{"in":{"x":"y"}}`, "", "X"},
		{"other", `{"s":"a"}`, "S: b", "S"},
		{"other, inside", `{"in":{"x":"y"}}`, "X: z", "X"},
		{"other case", `{"s":"a"}`, "S: A", "S"},
		{"twice", `{"s":"a"}`, "S: a|S: a", "S"},
		{"of nothing", `{}`, "S: a", "S"},
		{"of null", `{"n":null}`, "N: null", "N"},
		{"null", `{"n":null}`, "", ""},
		{"empty", `{"s":""}`, "S: ", ""},
		{"empty and missing", `{"s":""}`, "", "S"},
		{"a number in other words", `{"n":42.0}`, "N: 42", ""},
		{"a number in other words, in the header", `{"n":42}`, "N: 4.2e1", ""},
		{"another number", `{"n":42}`, "N: 43", "N"},
		{"another number beyond the safe range", `{"n":9007199254740993}`, "N: 9007199254740992", "N"},
		{"a text of a number", `{"s":"42"}`, "S: 42.0", "S"},
		{"unreadable", `{"s":"unreadable"}`, "S: unreadable", "S"},
		{"another truth", `{"b":true}`, "B: false", "B"},
		{"of two members the first one", `{"s":"a","s":"b"}`, "S: a", "S"},
		{"of two members the last one", `{"s":"a","s":"b"}`, "S: b", "S"},
		{"of two members with one name the last one", `{"s":"a","\u0073":"b"}`, "S: b", "S"},
		{"two members, inside", `{"in":{"x":"y","x":"z"}}`, "X: z", "X"},
		{"two members on the way", `{"in":{"x":"y"},"in":{"x":"z"}}`, "X: z", "X"},
		{"two members that no header names", `{"s":"a","t":1,"t":2}`, "S: a", ""},
		{"no value for a header", `{"s":{"a":1}}`, "", ""},
	} {
		given := map[string][]string{}
		for line := range strings.SplitSeq(test.headers, "|") {
			if name, value, ok := strings.Cut(line, ": "); ok {
				given["Mcp-Param-"+name] = append(given["Mcp-Param-"+name], value)
			}
		}
		got := params.FindMismatch([]byte(test.args), func(name string) ([]string, bool) {
			return given[name], !slices.Contains(given[name], "unreadable")
		})
		if strings.TrimPrefix(got, "Mcp-Param-") != test.want {
			t.Errorf("%s: the mismatch is %q, want %q", test.name, got, test.want)
		}
	}
}
