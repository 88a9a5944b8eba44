package web

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// answersPlainly is answers by decoding.
func answersPlainly(body []byte, id int64) bool {
	var all []map[string]json.RawMessage
	var one map[string]json.RawMessage
	if json.Unmarshal(body, &one) == nil {
		all = append(all, one)
	} else if json.Unmarshal(body, &all) != nil {
		return false
	}
	for _, m := range all {
		_, method := m["method"]
		_, result := m["result"]
		_, fault := m["error"]
		if string(m["id"]) == fmt.Sprint(id) && !method && (result || fault) {
			return true
		}
	}
	return false
}

func TestAnswers(t *testing.T) {
	for _, s := range answerSeeds {
		if json.Valid([]byte(s)) {
			if got, want := answersRequest([]byte(s), 5), answersPlainly([]byte(s), 5); got != want {
				t.Errorf("%s: %v", s, got)
			}
		}
	}
	// The head of a message that was cut off tells it too.
	if !answersRequest([]byte(`{"jsonrpc":"2.0","id":5,"result":{"cut`), 5) {
		t.Error("a head with an id and a result is not recognised")
	}
	if answersRequest([]byte(`{"jsonrpc":"2.0","id":5`), 5) {
		t.Error("the beginning of a number was taken for the number")
	}
}

func FuzzAnswers(f *testing.F) {
	for _, s := range answerSeeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got := answersRequest(b, 5) // must not panic or hang, whatever b is
		if !json.Valid(b) || strings.Contains(string(b), `\u`) {
			return
		}
		// A key that stands twice is read once, and a mixed batch is read up to what is no object: both are nonsense.
		for _, key := range []string{`"id"`, `"method"`, `"result"`, `"error"`} {
			if strings.Count(string(b), key) > 1 {
				return
			}
		}
		if b[0] != '[' && got != answersPlainly(b, 5) {
			t.Errorf("%s: %v", b, got)
		}
	})
}

func TestStreamDelay(t *testing.T) {
	const first, most = time.Second, 30 * time.Second
	for failures := range 100 {
		for range 20 {
			d := streamDelay(rand.Float64, failures, 0, first, most)
			full := min(first<<min(failures, 10), most)
			if d < full/2 || d > full {
				t.Fatalf("after %d failures: %v, want %v to %v", failures, d, full/2, full)
			}
			if d := streamDelay(rand.Float64, failures, time.Minute, first, most); d != time.Minute {
				t.Fatalf("the server asked for 1m and gets %v", d)
			}
			d = streamDelay(rand.Float64, failures, 300*time.Millisecond, first, most)
			if failures == 0 && d != 300*time.Millisecond || failures > 0 && d < 500*time.Millisecond {
				t.Fatalf("the server asked for 300ms, and after %d failures gets %v", failures, d)
			}
		}
	}
	if d := streamDelay(rand.Float64, 0, 1, first, most); d != minStreamDelay {
		t.Errorf("the server asked for 1ns and gets %v", d)
	}
}

// A program that gives Config.Rand decides how long the pauses are, so that it can do the same thing twice.
func TestRandOfTheConfiguration(t *testing.T) {
	draws := 0
	conn, err := NewHTTP(Config{URL: "https://example.com/mcp", Rand: func() float64 { draws++; return 0.5 }}).Dial(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := streamDelay(conn.(*httpConn).rand, 1, 0, time.Second, time.Minute); draws != 1 || d < 1500*time.Millisecond || d > 1500*time.Millisecond+time.Nanosecond {
		t.Errorf("%d draws, and the pause is %s", draws, d)
	}
}

var answerSeeds = []string{
	`{"jsonrpc":"2.0","id":5,"result":{}}`, `{"result":{"id":6,"method":"x"},"id":5}`, ` { "id" : 5 , "error" : null } `,
	`{"id":5,"method":"ping"}`, `{"id":"5","result":1}`, `{"id":55,"result":1}`, `{"id":5}`, `{}`, ``, `[]`, `null`, `5`,
	`[{"method":"a"},{"id":5,"result":[]}]`, `[{"id":4,"result":"]}\"{"},{"id":5,"result":"\\"}]`,
	`[1,{"id":5,"result":1}]`,
	`{"result":"\\\"}","id":5}`, `{"a":[[{"b":"}"}]],"id":5,"result":true}`, `{"id":5,"result":{}`, `{"id":-5,"result":1}`,
	`{"jsonrpc":"2.0","id":5,"result":{"cut`, `{"jsonrpc":"2.0","id":5`,
}
