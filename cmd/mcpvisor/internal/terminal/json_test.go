package terminal

import (
	"bytes"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// TestJSONIsSafeAndMeansTheSame checks that escaped JSON decodes to the same values and holds nothing that acts on a terminal.
func TestJSONIsSafeAndMeansTheSame(t *testing.T) {
	want := map[string]any{
		"esc": "\x1b[2J", "c1": "a\u009bb", "bidi": "x\u202ey", "zero": "a\u200bb", "tag": "a\U000e0041b",
		"plain":    "ä€𝄞 <&>\n\t",
		"replaced": "\ufffd", "line": "\u2028",
	}
	var b bytes.Buffer
	if err := PrintJSON(&b, want); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); messages.Printable(text) != text {
		t.Errorf("it holds something that acts on a terminal: %q", text)
	}
	var got map[string]any
	want["schema"] = float64(JSONSchema)
	if err := json.Unmarshal(b.Bytes(), &got); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q became %q (%v)", want, got, err)
	}
}

// TestWhatIsPrintedHasItsVersion checks that objects and arrays of objects carry the version of the JSON forms.
func TestWhatIsPrintedHasItsVersion(t *testing.T) {
	type one struct {
		A string `json:"a,omitempty"`
	}
	for _, c := range []struct {
		v    any
		want string
	}{
		{one{"<&>"}, `{"schema":1,"a":"<&>"}`}, {one{}, `{"schema":1}`}, {[]one{{"x"}, {}}, `[{"schema":1,"a":"x"},{"schema":1}]`},
		{[]one{}, `[]`}, {[]string{"x"}, `["x"]`}, {"x", `"x"`}, {nil, `null`},
	} {
		if got, err := VersionedJSON(c.v); err != nil || string(got) != c.want {
			t.Errorf("%v: %s, %v", c.v, got, err)
		}
	}
}
