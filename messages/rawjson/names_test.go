package rawjson_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

func TestCheckNames(t *testing.T) {
	many := `{"n0":1`
	for i := 1; i < 40; i++ {
		many += fmt.Sprintf(`,"n%d":{}`, i)
	}
	for src, want := range map[string]rawjson.NameError{
		`{"type":1,"Type":2}`:                      {First: "type", Second: "Type"},
		`{"type":1,"type":2}`:                      {First: "type", Second: "type"},
		`{"a":[0,{"b/c":{"k":1,"\u212a":2}}]}`:     {Path: "/a/1/b~1c", First: "k", Second: "\u212a"},
		`{"properties":1,"propertie\u017f":2}`:     {First: "properties", Second: "properties"[:9] + "\u017f"},
		many + `,"N3":1}`:                          {First: "n3", Second: "N3"},
		"{\"\xff\":1,\"\xfe\":2}":                  {First: "\ufffd", Second: "\ufffd"},
		`{"\ud800":1,"\udfff":2}`:                  {First: "\ufffd", Second: "\ufffd"},
		`{"É":1,"é":2}`:                            {First: "É", Second: "é"},
		`{"a":{"b":1},"c":{"x":[{"d":0,"D":0}]}} `: {Path: "/c/x/0", First: "d", Second: "D"},
	} {
		var got *rawjson.NameError
		if err := rawjson.CheckNames([]byte(src)); !errors.As(err, &got) || *got != want {
			t.Errorf("%s: %+v, %v", src, got, err)
		}
	}
	for _, src := range []string{
		many + `}`, `{"a":{"a":{"a":1}},"b":{"a":1}}`, `[{"a":1},{"A":1}]`, `{"ab":1,"abc":2,"a":3,"":4}`, `{"\u0000":1," ":2}`, `7`, `"x"`,
		strings.Repeat("[", rawjson.MaxDepth) + strings.Repeat("]", rawjson.MaxDepth),
	} {
		if err := rawjson.CheckNames([]byte(src)); err != nil {
			t.Errorf("%.60s: %v", src, err)
		}
	}
	for _, src := range []string{``, `{`, `{"a"}`, `{} 1`, `[1,]`, `{"a":[{"b":tru}]}`, strings.Repeat("[", rawjson.MaxDepth+1)} {
		var fault *rawjson.Error
		if err := rawjson.CheckNames([]byte(src)); !errors.As(err, &fault) {
			t.Errorf("%.60s: %v", src, err)
		}
	}
}

func TestCheckDoubled(t *testing.T) {
	many := `{"x":1`
	for i := range 20 {
		many += fmt.Sprintf(`,"n%d":{"a":1,"A":2}`, i)
	}
	for src, ok := range map[string]bool{
		`{"a":1,"A":2,"b":{"c":1,"C":[{"d":1,"D":2}]}}`: true, `{"a":[{"b":1,"\u0062":2}]}`: false, many + `,"N3":1}`: true,
		many + `,"n3":1}`: false, "{\"\xff\":1,\"\xfe\":2}": false, `{"":1,"":2}`: false, `{"k":1,"\u212a":2}`: true,
	} {
		if err := rawjson.CheckDoubled([]byte(src)); ok != (err == nil) {
			t.Errorf("%.60s: %v", src, err)
		}
	}
}

// A stranger chose the names, so a terminal must not obey them.
func TestNameErrorIsEscaped(t *testing.T) {
	err := &rawjson.NameError{Path: "/\x1b[2J", First: "\u202ea", Second: "\u202eA"}
	if text := err.Error(); strings.ContainsAny(text, "\x1b\u202e") {
		t.Errorf("%q", text)
	}
}

// FuzzCheckNames holds it to encoding/json: what is accepted is JSON, and has no names that the other takes for one.
func FuzzCheckNames(f *testing.F) {
	for _, s := range []string{`{"a":1,"A":2}`, `{"a":1,"b":{"c":[]}}`, `[{"\u212a":1,"k":1}]`, "{\"\xff\":1,\"\\udfff\":2}", `{"a":1`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		err := rawjson.CheckNames(b)
		var names *rawjson.NameError
		if valid := json.Valid(b); valid && err != nil && !errors.As(err, &names) || !valid && err == nil {
			t.Fatalf("valid: %v, and %v", valid, err)
		}
		if err != nil || len(b) == 0 || b[0] != '{' {
			return
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(b, &members) != nil {
			t.Fatal("no object")
		}
		for name := range members {
			for other := range members {
				if name != other && strings.EqualFold(name, other) {
					t.Fatalf("%q and %q", name, other)
				}
			}
		}
	})
}

// A list of tools is checked whenever a server offers another one.
func TestCheckDoubledAllocatesNothing(t *testing.T) {
	src := []byte(`{"name":"a","inputSchema":{"type":"object","properties":{"x":{"type":"string"},"y":{"enum":["a","b"]}},"required":["x"]}}`)
	if n := testing.AllocsPerRun(100, func() {
		if rawjson.CheckDoubled(src) != nil {
			t.Fatal()
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}
