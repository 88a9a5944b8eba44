package jsonrpc

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// seedMessages are the messages from which the fuzz tests start.
var seedMessages = []string{
	`{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"a\n\"b\\"}],"isError":true}}`,
	`{"jsonrpc":"2.0","id":9007199254740993,"error":{"code":-32601,"message":"no","data":[1e400,-0.5E-3]}}`,
	`{"result":{"isError":false,"isError":true,"x":{"isError":null}},"\u0069d":1,"id":2}`,
	`{"jsonrpc":"2.0","method":"notifications\/message","params":{"data":null},"error":null}`,
	"\t{ \"id\" : \"7\" ,\r\n\"method\":\"ping\" } ",
	`[{"id":1,"result":{}},{"id":2,"result":7},5,[],{}]`,
	`{"jsonrpc":"2.0","result":{"a":"` + strings.Repeat("x", 40) + `\\"},"id":12}`,
	`{"a":"\u00e9\ud800\uD83D\uDE00` + "\xff" + `","b":[true,false,null,[[[{}]]]]}`,
	`{"id":01}`, `{"id":1,}`, `{"id":1`, `{"a":"` + "\x01" + `"}`,
	`{"x":NaN,"id":3}`, `{"a":"\x"}`, `{"a" 1}`, `[1,]`, `[,1]`, `{,}`,
	`-`, `-0`, `1.`, `1e`, `1e+5`, `.5`, `tru`, `"\u12g4"`, `"\`, `{"a":1}}`, ``,
}

// FuzzEnvelope compares ScanEnvelope, one pass over the bytes, with the result of encoding/json.
func FuzzEnvelope(f *testing.F) {
	for _, s := range seedMessages {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		i := rawjson.SkipSpace(b, 0)
		if i == len(b) || b[i] != '{' {
			return
		}
		e, end := ScanEnvelope(b, i, 0)
		var want map[string]json.RawMessage
		if err := json.Unmarshal(b, &want); err != nil {
			if end >= 0 && rawjson.SkipSpace(b, end) == len(b) {
				t.Fatalf("accepted, encoding/json: %v", err)
			}
			return
		}
		if end < 0 || rawjson.SkipSpace(b, end) != len(b) {
			t.Fatal("not accepted, encoding/json accepts it")
		}
		same := func(name string, got []byte) {
			if w := want[name]; !bytes.Equal(got, w) && (!rawjson.IsNull(got) || string(w) != "null") {
				t.Errorf("%s is %q, encoding/json has %q", name, got, w)
			}
		}
		same("id", e.RawID)
		same("params", e.Params)
		same("result", e.Result)
		same("error", e.ErrorObject)
		if n, err := strconv.ParseInt(string(want["id"]), 10, 64); e.ID != 0 && (err != nil || n != e.ID) {
			t.Errorf("id is %d, encoding/json has %s", e.ID, want["id"])
		}
		var method string
		if json.Unmarshal(want["method"], &method) == nil && rawjson.IsText(want["method"]) &&
			string(e.Method) != method && !strings.ContainsRune(method, '\ufffd') {
			t.Errorf("method is %q, encoding/json has %q", e.Method, method)
		}
		var result map[string]json.RawMessage
		if json.Unmarshal(want["result"], &result) == nil && e.IsError != (string(result["isError"]) == "true") {
			t.Errorf("isError is %v in %s", e.IsError, want["result"])
		}
	})
}

// FuzzFragment cuts a message at both ends and checks that the id found in the rest is that of the whole message.
func FuzzFragment(f *testing.F) {
	for i, s := range seedMessages {
		f.Add([]byte(s), i*3, i*5)
	}
	f.Fuzz(func(t *testing.T, b []byte, head, tail int) {
		i := rawjson.SkipSpace(b, 0)
		if i == len(b) || b[i] != '{' || !json.Valid(b) {
			return
		}
		e, _ := ScanEnvelope(b, i, 0)
		if hasTwice(b[i:]) {
			return // which of two counts depends on where the cut is
		}
		head, tail = min(max(head, 0), len(b)), min(max(tail, 0), len(b))
		id, certain := FindAnsweredID(b[:head], b[len(b)-tail:])
		switch {
		case !certain && id != 0:
			t.Fatalf("an uncertain id %d", id)
		case certain && id == 0 && !bytes.Contains(b, []byte("method")) && !bytes.ContainsRune(b, '\\'):
			t.Fatalf("taken for a request: %q", b)
		case id != 0 && id != e.ID:
			t.Fatalf("id is %d, found %d in %q … %q", e.ID, id, b[:head], b[len(b)-tail:])
		}
	})
}

// hasTwice reports whether a key stands twice in the object.
func hasTwice(b []byte) bool {
	seen := make(map[string]bool)
	m := rawjson.ObjectAt(b, 0, 0)
	for m.Next() {
		if seen[string(m.Name)] {
			return true
		}
		seen[string(m.Name)] = true
		m.Skip()
	}
	return false
}

func TestFragment(t *testing.T) {
	long := strings.Repeat(`{\"id\":5}`, 1000)
	tests := []struct {
		name, message string
		id            int64
		certain       bool
	}{
		{"id first", `{"jsonrpc":"2.0","id":7,"result":{"x":"` + long + `"}}`, 7, true},
		{"id last", `{"jsonrpc":"2.0","result":{"x":"` + long + `"},"id":7}`, 7, true},
		{"id before the last member", `{"result":{"x":"` + long + `"},"id":7, "jsonrpc" : "2.0" } `, 7, true},
		{"result ends in nested brackets", `{"id":7,"jsonrpc":"2.0","result":["` + long + `",[{"a":"]}"}]]}`, 7, true},
		{"a notification", `{"jsonrpc":"2.0","method":"m","params":"` + long + `"}`, 0, true},
		{"a request with one of our ids", `{"jsonrpc":"2.0","id":7,"params":"` + long + `","method":"m"}`, 0, true},
		{"a text id", `{"jsonrpc":"2.0","id":"7","result":"` + long + `"}`, 0, false},
		{"id in the middle", `{"a":"` + long + `","id":7,"result":"` + long + `"}`, 0, false},
		{"a batch", `[{"jsonrpc":"2.0","id":7,"result":"` + long + `"}]`, 0, false},
		{"a line of a log", `{"id":7,"text":"` + long + `"}`, 0, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := []byte(tt.message)
			id, certain := FindAnsweredID(b[:4096], b[len(b)-4096:])
			if id != tt.id || certain != tt.certain {
				t.Errorf("found %d, %v; want %d, %v", id, certain, tt.id, tt.certain)
			}
		})
	}
}

func BenchmarkScan(b *testing.B) {
	words := strings.Repeat("Lorem ipsum dolor sit amet, ", 2340)
	numbers := strings.Repeat(`{"x":1.25,"y":[true,null]},`, 2427) + "0"
	for name, text := range map[string]string{
		"100B":        `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"0123456789012345678901234"}]}}`,
		"64KB text":   `{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"` + words + `"}]}}`,
		"64KB values": `{"jsonrpc":"2.0","id":7,"result":{"structuredContent":[` + numbers + `]}}`,
	} {
		b.Run(name, func(b *testing.B) {
			body := []byte(text)
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				if _, end := ScanEnvelope(body, 0, 0); end < 0 {
					b.Fatal("not accepted")
				}
			}
		})
	}
}
