package output

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

func answer(structured string) json.RawMessage {
	return json.RawMessage(`{"content":[],"structuredContent":` + structured + `,"x-unknown":9007199254740993}`)
}

func TestStructuredResultsAreComparedWithTheOutputSchema(t *testing.T) {
	const weather = `{"type":"object","properties":{"t":{"type":"number"},"n":{"type":"integer","const":9007199254740993},
		"tags":{"type":"array","items":{"enum":["a","b"]}}},"required":["t"],"additionalProperties":false}`
	for _, c := range []struct{ name, schema, result, want string }{
		{"fits", weather, string(answer(`{"t":1.5,"tags":["a","b"]}`)), ""},
		{"large integers are exact", weather, string(answer(`{"t":1,"n":9007199254740993}`)), ""},
		{"and not nearly so", weather, string(answer(`{"t":1,"n":9007199254740992}`)),
			"structuredContent/n: it is not the value that the schema names"},
		{"a wrong type", weather, string(answer(`{"t":"warm"}`)), "structuredContent/t: it is of type string, not number"},
		{"missing", weather, string(answer(`{}`)), `structuredContent: it has no "t"`},
		{"unknown", weather, string(answer(`{"t":1,"\u202eevil":1}`)), "which the schema does not know"},
		{"deep", weather, string(answer(`{"t":1,"tags":["a","c"]}`)),
			"structuredContent/tags/1: it is none of the values that the schema lists"},
		{"no structured content", weather, `{"content":[]}`, "has no structuredContent"},
		{"another case is another key", weather, `{"content":[],"structuredcontent":{"t":1}}`, "has no structuredContent"},
		{"an error promises nothing", weather, `{"content":[],"isError":true}`, ""},
		{"no schema", ``, `{"content":[]}`, ""},
		{"a schema that fits everything", `{}`, string(answer(`null`)), ""},
		{"an array", `{"type":"array"}`, string(answer(`[1]`)), ""},
		{"2020-12 is the default", `{"$defs":{"a":{"type":"string"}},"prefixItems":[{"$ref":"#/$defs/a"}]}`,
			string(answer(`[1]`)), "of type number, not string"},
		{"draft-07", `{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"string"}]}`,
			string(answer(`[1]`)), "of type number, not string"},
		{"draft-04", `{"$schema":"http://json-schema.org/draft-04/schema#","maximum":3,"exclusiveMaximum":true}`,
			string(answer(`3`)), "exclusiveMaximum: got 3"},
		{"2019-09", `{"$schema":"https://json-schema.org/draft/2019-09/schema","items":[{"type":"string"}]}`,
			string(answer(`[1]`)), "of type number, not string"},
		{"an unknown dialect", `{"$schema":"https://example.com/dialect"}`, string(answer(`1`)),
			"cannot be used: its $schema names a dialect that is not known"},
		{"a reference to the network", `{"$ref":"https://example.com/s.json"}`, string(answer(`1`)),
			"it refers to another document, and none is fetched"},
		{"a reference to a file", `{"$ref":"file:///etc/passwd"}`, string(answer(`1`)),
			"it refers to another document, and none is fetched"},
		{"a reference to a neighbour", `{"$ref":"s.json"}`, string(answer(`1`)),
			"it refers to another document, and none is fetched"},
		{"a dangling reference", `{"$ref":"#/$defs/x"}`, string(answer(`1`)), "a part of itself that is not there"},
		{"no schema at all", `{"type":"strnig"}`, string(answer(`1`)), "breaks the rules of JSON Schema"},
		{"a pattern of JavaScript", `{"pattern":"(?<=a)b"}`, string(answer(`"b"`)), ""},
		{"a choice", `{"anyOf":[{"type":"string"},{"type":"null"}]}`, string(answer(`1`)), "fits none of the alternatives"},
		{"control characters", `{"type":"object","additionalProperties":false}`, string(answer(`{"\u001b[2J":1}`)),
			"does not know"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var checker Checker
			before := c.result
			for range 2 { // compiled, and kept
				got := checker.Flaw(json.RawMessage(c.schema), json.RawMessage(c.result))
				if c.want == "" && got != "" || !strings.Contains(got, c.want) {
					t.Errorf("%q, want %q", got, c.want)
				}
				if strings.ContainsAny(got, "\x1b\u202e\n") || len([]rune(got)) > maxProblemText+1 {
					t.Errorf("not fit for a line: %q", got)
				}
			}
			if c.result != before {
				t.Error("the result was changed")
			}
		})
	}
}

// What a hostile server can send comes to an end, with a remark, and costs no stack. Without the bounds most of these
// would go on for ever; the benchmarks tell how long they take.
func TestHostileSchemasAndAnswersAreBounded(t *testing.T) {
	var doubling, chain strings.Builder
	doubling.WriteString(`{"$ref":"#/$defs/a0","$defs":{`)
	chain.WriteString(`{"$ref":"#/$defs/a0","$defs":{`)
	for i := range 60 {
		fmt.Fprintf(&doubling, `"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	for i := range 1900 {
		fmt.Fprintf(&chain, `"a%d":{"$ref":"#/$defs/a%d"},`, i, i+1)
	}
	doubling.WriteString(`"a60":{}}}`)
	chain.WriteString(`"a1900":{"items":{"$ref":"#/$defs/a0"}}}}`)
	manyEnums := `{"items":{"enum":["` + strings.Join(strings.Split(strings.Repeat("x,", 10_000), ","), `","`) + `"]}}`
	list := func(item string, n int) string {
		return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
	}
	for _, c := range []struct{ name, schema, structured string }{
		{"doubling references", doubling.String(), `1`},
		{"a chain of references into a deep answer", chain.String(), strings.Repeat("[", 120) + strings.Repeat("]", 120)},
		{"a reference to itself", `{"$ref":"#"}`, `1`},
		{"a deep schema", strings.Repeat(`{"not":`, 100_000) + `{}` + strings.Repeat(`}`, 100_000), `1`},
		{"a deep schema within the size", strings.Repeat(`{"not":`, 9_000) + `{}` + strings.Repeat(`}`, 9_000), `1`},
		{"a large schema", `{"description":"` + strings.Repeat("x", maxSchema) + `"}`, `1`},
		{"many parts", `{"allOf":` + list(`{"minimum":1}`, 6_000) + `}`, `1`},
		{"a large number", `{"multipleOf":0.1}`, `1e999999`},
		{"a large number in the schema", `{"maximum":1e999999}`, `1`},
		{"many digits", `{"maximum":1}`, strings.Repeat("9", 100_000)},
		{"a deep answer", `{}`, strings.Repeat("[", 5_000) + strings.Repeat("]", 5_000)},
		{"a large answer", `{}`, `"` + strings.Repeat("x", maxContent) + `"`},
		{"many values", `{"items":{"type":"object"}}`, list("1", maxContentValues)},
		{"many values against many", manyEnums, list(`"y"`, 150_000)},
		{"many values against many parts", `{"items":{"allOf":` + list(`{"minimum":0}`, 3_000) + `}}`, list("1", 100_000)},
	} {
		t.Run(c.name, func(t *testing.T) {
			var checker Checker
			began := time.Now()
			got := checker.Flaw(json.RawMessage(c.schema), answer(c.structured))
			if !strings.Contains(got, "not checked") && !strings.Contains(got, "promises") {
				t.Errorf("no remark: %q", got)
			}
			t.Logf("%v: %s", time.Since(began), got)
		})
	}
	var checker Checker
	big := `"` + strings.Repeat("a", 100_000) + `"`
	if got := checker.Flaw(json.RawMessage(`{"pattern":"((a?){100}){100}$"}`), answer(big)); got != "" {
		t.Errorf("a pattern that is too large matches everything: %s", got)
	}
}

func TestCheckersAreBoundedAndSafeForManyGoroutines(t *testing.T) {
	var checker Checker
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 2 * maxCompiled / 8 {
				schema := json.RawMessage(fmt.Sprintf(`{"type":"object","required":["k%d"]}`, i))
				if got := checker.Flaw(schema, answer(fmt.Sprintf(`{"k%d":%d}`, i, g))); got != "" {
					t.Errorf("%d: %s", i, got)
				}
				if got := checker.Flaw(json.RawMessage(`{"type":"string"}`), answer(`1`)); got == "" {
					t.Error("the one that everybody uses finds nothing")
				}
			}
		})
	}
	wg.Wait()
	for i := range 2 * maxCompiled {
		checker.Flaw(json.RawMessage(fmt.Sprintf(`{"minimum":%d}`, i)), answer(`1`))
	}
	if len(checker.schemas) != maxCompiled {
		t.Errorf("%d schemas are kept", len(checker.schemas))
	}
}

func FuzzFlaw(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"enum":[1,"x"]}}}`, `{"a":2}`)
	f.Add(`{"$schema":"http://json-schema.org/draft-07/schema#","pattern":"^a+$","format":"date"}`, `"2020-01-01"`)
	f.Add(`{"unevaluatedProperties":false,"$dynamicRef":"#x","$dynamicAnchor":"x"}`, `{"a":1e400}`)
	f.Fuzz(func(t *testing.T, schema, structured string) {
		if len(schema) > 4096 || len(structured) > 4096 {
			return
		}
		var checker Checker
		if got := checker.Flaw(json.RawMessage(schema), answer(structured)); strings.ContainsAny(got, "\x1b\n\u202e") {
			t.Errorf("%q", got)
		}
	})
}

const benchSchema = `{"type":"object","properties":{"temperature":{"type":"number","description":"in celsius"},
"conditions":{"type":"string"},"humidity":{"type":"number"}},"required":["temperature","conditions","humidity"]}`

func BenchmarkFlaw(b *testing.B) {
	result := answer(`{"temperature":22.5,"conditions":"Partly cloudy","humidity":65}`)
	b.Run("no schema", func(b *testing.B) {
		var checker Checker
		for b.Loop() {
			checker.Flaw(nil, result)
		}
	})
	b.Run("kept", func(b *testing.B) {
		var checker Checker
		b.ReportAllocs()
		for b.Loop() {
			checker.Flaw(json.RawMessage(benchSchema), result)
		}
	})
	b.Run("kept, parallel", func(b *testing.B) {
		var checker Checker
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				checker.Flaw(json.RawMessage(benchSchema), result)
			}
		})
	})
	b.Run("compiled each time", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var checker Checker
			checker.Flaw(json.RawMessage(benchSchema), result)
		}
	})
}
