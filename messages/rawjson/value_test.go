package rawjson_test

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// What AppendValue writes is what encoding/json reads back as, and writes by itself but for the signs that it escapes for
// the sake of HTML.
func TestAppendValue(t *testing.T) {
	for _, v := range []any{
		nil, true, false, "", "a \"quoted\" \\ \n\u2028 é \x00", 0, -5, int64(math.MaxInt64), 0.0, 1.5, -0.25, 1e-6, 123456789012345680000.0,
		[]any(nil), []any{}, []any{1, "two", nil, []any{true}}, []string(nil), []string{"a", "b"},
		map[string]any(nil), map[string]any{}, map[string]any{"b": 1, "a": map[string]any{"z": []any{}, "": 2}, "c\n": "x"},
	} {
		got, ok := rawjson.AppendValue([]byte("before "), v)
		if want, err := json.Marshal(v); err != nil || !ok || string(got) != "before "+string(want) {
			t.Errorf("%#v: %s, %v; encoding/json writes %s", v, got, ok, want)
		}
	}
	wide := map[string]any{}
	for _, name := range strings.Fields("q w e r t y u i o p a s d f g h j k l") {
		wide[name] = name
	}
	if got, _ := rawjson.AppendValue(nil, wide); !strings.HasPrefix(string(got), `{"a":"a","d":"d"`) {
		t.Errorf("%s", got)
	}
}

func TestAppendValueLeavesTheRest(t *testing.T) {
	loop := map[string]any{}
	loop["self"] = loop
	for _, v := range []any{
		loop, math.NaN(), math.Inf(1), 1e-7, 1e21, struct{}{}, int8(1), []int{1}, map[string]string{"a": "b"}, json.Number("1"),
		json.RawMessage("{}"), []any{[]any{uint(1)}}, map[string]any{"a": make(chan int)},
	} {
		if got, ok := rawjson.AppendValue(nil, v); ok {
			t.Errorf("%T was written as %.80s", v, got)
		}
	}
}

func FuzzAppendValue(f *testing.F) {
	f.Add(`{"a":[1,2.5,"x",null,{"b":true}],"\u2028":"<é>"}`)
	f.Add(`[-0.0,1e300,12345678901234567890]`)
	f.Fuzz(func(t *testing.T, text string) {
		var v, back any
		if json.Unmarshal([]byte(text), &v) != nil {
			return
		}
		got, ok := rawjson.AppendValue(nil, v)
		if !ok {
			return
		}
		if err := json.Unmarshal(got, &back); err != nil || !reflect.DeepEqual(v, back) {
			t.Errorf("%s became %s: %v", text, got, err)
		}
	})
}

// BenchmarkAppendValue writes the arguments of a call, small and with a file in them, beside encoding/json.
func BenchmarkAppendValue(b *testing.B) {
	for name, args := range map[string]map[string]any{
		"small": {"path": "/etc/hosts", "limit": 20, "deep": true},
		"large": {"path": "/etc/hosts", "text": strings.Repeat("a line of sixty-four bytes, as source code has them, and a sign\n", 1024)},
	} {
		b.Run(name+"/rawjson", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, ok := rawjson.AppendValue(nil, args); !ok {
					b.Fatal("not written")
				}
			}
		})
		b.Run(name+"/encoding-json", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := json.Marshal(args); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
