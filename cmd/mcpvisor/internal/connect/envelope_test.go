package connect

import (
	"strings"
	"testing"
)

// A message is waited for by its id if it is one whole object with an id that the daemon echoes; any other line is passed on, and waited for by
// nothing.
func TestWhatIsWaitedFor(t *testing.T) {
	for line, want := range map[string]struct{ id, method string }{
		`{"id":1,"method":"a"}`:                                      {"1", `"a"`},
		"  {\"method\":\"a\" , \"id\" : \"x\" } ":                    {`"x"`, `"a"`},
		`{"id":-5,"result":{}}`:                                      {"-5", ""},
		`{"method":"a"}`:                                             {"", `"a"`},
		`{"id":"` + strings.Repeat("x", maxID-2) + `","method":"a"}`: {`"` + strings.Repeat("x", maxID-2) + `"`, `"a"`},
		`{"id":"` + strings.Repeat("x", maxID-1) + `","method":"a"}`: {},
		`{"id":null,"method":"a"}`:                                   {},
		`{"id":[1],"method":"a"}`:                                    {},
		`{"id":true,"method":"a"}`:                                   {},
		`{"id":1,"method":"a"`:                                       {},
		`{"id":1,"method":"a"} x`:                                    {},
		`{"id":1,"method":"a"}{"id":2}`:                              {},
		`["id":1,"method":"a"}`:                                      {},
		`["id",1]`:                                                   {},
		`x"id":1,"method":"a"}`:                                      {},
		`"id"`:                                                       {},
		``:                                                           {},
		`   `:                                                        {},
	} {
		if e := readEnvelope([]byte(line)); string(e.id) != want.id || string(e.method) != want.method {
			t.Errorf("%.80s: id %s, method %s", line, e.id, e.method)
		}
	}
}

// The bridge tells a request, which wants an answer, from an answer, which has one of a result and an error.
func TestWhatAMessageIs(t *testing.T) {
	for line, want := range map[string]string{
		`{"id":1,"method":"a"}`:             "request",
		`{"method":"a"}`:                    "", // a notification
		`{"id":1,"method":""}`:              "",
		`{"id":1,"method":5}`:               "",
		`{"id":1,"result":{}}`:              "answer",
		`{"id":1,"error":{}}`:               "answer",
		`{"id":1,"result":{},"error":{}}`:   "",
		`{"id":1}`:                          "",
		`{"result":{}}`:                     "",
		`{"id":1,"method":"a","result":{}}`: "request",
	} {
		e := readEnvelope([]byte(line))
		got := ""
		switch {
		case e.isAnswer():
			got = "answer"
		case e.isRequest():
			got = "request"
		}
		if got != want {
			t.Errorf("%s is %q", line, got)
		}
	}
}
