package gateway

import (
	"testing"

	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// The gateway adds its members to a result or a notification beside those of the server, which stay byte for byte.
func TestWhatIsAddedToWhatAServerWrote(t *testing.T) {
	const hint, related = `"ttlMs":0,"cacheScope":"private"`, `"io.modelcontextprotocol/related-task"`
	for what, c := range map[string]struct{ got, want string }{
		"hints":                   {string(withCacheHints([]byte(`{"a": 1}`))), `{` + hint + `,"a": 1}`},
		"hints of nothing":        {string(withCacheHints([]byte(`{ }`))), `{` + hint + `}`},
		"hints of a whole result": {string(withCacheHints([]byte(`{"resultType":"complete"}`))), `{` + hint + `,"resultType":"complete"}`},
		"hints that are there":    {string(withCacheHints([]byte(`{"ttlMs":5}`))), `{"ttlMs":5}`},
		"hints of a question":     {string(withCacheHints([]byte(`{"resultType":"input_required"}`))), `{"resultType":"input_required"}`},
		"a token":                 {string(withToken([]byte(`{"progressToken":7,"progress":1.50}`), []byte(`"x"`))), `{"progressToken":"x","progress":1.50}`},
		"no token":                {string(withToken([]byte(`{"progress":1}`), []byte(`"x"`))), ""},
		"a task":                  {string(withRelatedTask([]byte(`{"a":1}`), "ours")), `{"_meta":{` + related + `:{"taskId":"ours"}},"a":1}`},
		"a task in its place":     {string(retieTask([]byte(`{"a":1,"_meta":{"k":2,`+related+`:{"taskId":"theirs"}}}`), "ours")), `{"a":1,"_meta":{"k":2,` + related + `:{"taskId":"ours"}}}`},
		"no task to be retied":    {string(retieTask([]byte(`{"a":1,"_meta":{"k":2}}`), "ours")), `{"a":1,"_meta":{"k":2}}`},
		"an error":                {string(appendProblem(nil, &serve.Error{Code: -5, Message: `"x"`})), `{"code":-5,"message":"\"x\""}`},
		"an error with data":      {string(appendProblem(nil, &serve.Error{Code: -5, Message: "x", Data: []byte(`{"d":1}`)})), `{"code":-5,"message":"x","data":{"d":1}}`},
		"an error of a server":    {string(appendProblem(nil, &serve.Error{Code: -5, Raw: []byte(`{"code":7}`)})), `{"code":7}`},
		"the text of an error":    {problemText(&serve.Error{Message: "x"}), "x"},
		"the text of a server's":  {problemText(&serve.Error{Message: "x", Raw: []byte(`{"message":"y"}`)}), "y"},
		"the text of a wordless":  {problemText(&serve.Error{Message: "x", Raw: []byte(`{"message":5}`)}), ""},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, not %s", what, c.got, c.want)
		}
	}
}

// The gateway asks an agent only such questions as it declares, with the parts that it declares.
func TestWhatAnAgentCanBeAsked(t *testing.T) {
	for _, c := range []struct {
		declared, ability, params string
		want                      bool
	}{
		{`{}`, "elicitation", `{}`, false},
		{`{"elicitation":null}`, "elicitation", `{}`, false},
		{`{"elicitation":{}}`, "elicitation", `{}`, true},
		{`{"elicitation":{}}`, "elicitation", `{"mode":"form"}`, true},
		{`{"elicitation":{}}`, "elicitation", `{"mode":"url"}`, false},
		{`{"elicitation":{"form":{}}}`, "elicitation", `{"mode":"url"}`, false},
		{`{"elicitation":{"url":{}}}`, "elicitation", `{"mode":"url"}`, true},
		{`{"elicitation":{}}`, "sampling", `{}`, false},
		{`{"sampling":{}}`, "sampling", `{}`, true},
		{`{"sampling":{}}`, "sampling", `{"tools":[]}`, false},
		{`{"sampling":{}}`, "sampling", `{"tools":null}`, true},
		{`{"sampling":{"tools":{}}}`, "sampling", `{"tools":[]}`, true},
		{`{"roots":{}}`, "roots", ``, true},
		{`{"sampling":{}}`, "roots", ``, false},
	} {
		if got := canBeAsked([]byte(c.declared), c.ability, []byte(c.params)); got != c.want {
			t.Errorf("%s, %s %s: %v", c.declared, c.ability, c.params, got)
		}
	}
}

// The members of several parts make one list.
func TestPartsAreJoinedByCommas(t *testing.T) {
	for have, want := range map[string]string{"": "", `"a":1`: `"a":1,`} {
		if got := string(appendComma([]byte(have))); got != want {
			t.Errorf("%q: %q", have, got)
		}
	}
	r := &serve.Request{Session: &serve.Session{Modern: true}}
	o, e := new(Gateway).forwardOptions(&outgoing{r: r, input: input{others: []byte(`"a":1`), responses: []byte(`{"q":{}}`)}})
	if e != nil || string(o.Input) != `"a":1,"inputResponses":{"q":{}}` || string(o.Capabilities) != "{}" {
		t.Errorf("%+v, %v", o, e)
	}
}
