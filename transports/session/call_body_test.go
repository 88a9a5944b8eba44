package session

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzCallBody checks the request: it is one line of valid JSON with the values that the caller gave.
func FuzzCallBody(f *testing.F) {
	f.Add("tool", []byte(`{"a":1}`))
	f.Add("to\"ol\\\x01\u2028", []byte("{\n\"a\" :\r\n [ 1,\n2 ], \"b\":\"x\\ny\"}\n"))
	f.Add("", []byte(`[]`))
	f.Add("\xff", []byte(`{} {}`))
	f.Fuzz(func(t *testing.T, tool string, args []byte) {
		if callProblem(tool, args, false) != "" {
			return
		}
		body := (&request{method: "tools/call", name: tool, args: args}).appendTo(nil, 5, nil, nil)
		if bytes.ContainsAny(body, "\n\r") {
			t.Fatalf("a newline in %q", body)
		}
		var got struct {
			JSONRPC string `json:"jsonrpc"`
			ID      int64  `json:"id"`
			Method  string `json:"method"`
			Params  struct {
				Name      string          `json:"name"`
				Arguments json.RawMessage `json:"arguments"`
			} `json:"params"`
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		if got.JSONRPC != "2.0" || got.ID != 5 || got.Method != "tools/call" || got.Params.Name != tool {
			t.Errorf("sent as %+v", got)
		}
		if len(args) == 0 {
			args = []byte("{}")
		}
		var a, b bytes.Buffer
		if err := json.Compact(&a, args); err != nil {
			t.Fatalf("arguments %q were accepted: %v", args, err)
		}
		if err := json.Compact(&b, got.Params.Arguments); err != nil || a.String() != b.String() {
			t.Errorf("arguments %q became %q", args, got.Params.Arguments)
		}
	})
}
