package remote

import (
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

func TestParametersStandWhereTheyMay(t *testing.T) {
	any := map[string]string{"p": ".*"}
	for name, template := range map[string]Template{
		"command":    {Spec: messages.Spec{Command: "{p}", Args: []string{"{p}"}}, Parameters: any},
		"cwd":        {Spec: messages.Spec{Command: "x", Cwd: "/{p}", Args: []string{"{p}"}}, Parameters: any},
		"env":        {Spec: messages.Spec{Command: "x", Env: map[string]string{"A": "{p}"}, Args: []string{"{p}"}}, Parameters: any},
		"host":       {Spec: messages.Spec{URL: "https://{p}.example/{p}"}, Parameters: any},
		"port":       {Spec: messages.Spec{URL: "https://h.example:{p}/{p}"}, Parameters: any},
		"nowhere":    {Spec: messages.Spec{Command: "x"}, Parameters: any},
		"undeclared": {Spec: messages.Spec{Command: "x", Args: []string{"{q}"}}},
		"pattern":    {Spec: messages.Spec{Command: "x", Args: []string{"{p}"}}, Parameters: map[string]string{"p": "("}},
		"breaking":   {Spec: messages.Spec{Command: "x", Args: []string{"{p}"}}, Parameters: map[string]string{"p": "a)|(b"}},
		"name":       {Spec: messages.Spec{Command: "x", Args: []string{"{P}"}}, Parameters: map[string]string{"P": "a"}},
	} {
		if _, err := template.compile(name); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestATemplateIsFilled(t *testing.T) {
	spec := messages.Spec{Type: messages.HTTP, URL: "https://h.example/r/{repo}/mcp?q={repo}", Headers: map[string]string{"X": "v {who}"},
		Args: []string{"--{repo}", "{who}", `{"json": 1}`}}
	c, err := Template{Spec: spec, Parameters: map[string]string{"repo": ".*", "who": ".*"}}.compile("t")
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.fillSpec(map[string]string{"repo": "a/../b?c#d{who}", "who": "x{repo}"})
	if err != nil {
		t.Fatal(err)
	}
	if s.URL != "https://h.example/r/a%2F..%2Fb%3Fc%23d%7Bwho%7D/mcp?q=a%2F..%2Fb%3Fc%23d%7Bwho%7D" || s.Headers["X"] != "v x{repo}" ||
		strings.Join(s.Args, "|") != `--a/../b?c#d{who}|x{repo}|{"json": 1}` || spec.Args[1] != "{who}" || spec.Headers["X"] != "v {who}" {
		t.Errorf("%+v", s)
	}
	for name, values := range map[string]map[string]string{
		"dots": {"repo": "..", "who": "x"}, "dash": {"repo": "a", "who": "-x"}, "line": {"repo": "a", "who": "x\ny"}, "c1": {"repo": "a", "who": "\u0085"},
		"nul": {"repo": "a\x00", "who": "x"}, "utf-8": {"repo": "\xff", "who": "x"}, "long": {"repo": strings.Repeat("a", maxValue+1), "who": "x"},
		"missing": {"repo": "a"}, "more": {"repo": "a", "who": "x", "env": "y"},
	} {
		if s, err := c.fillSpec(values); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
}
