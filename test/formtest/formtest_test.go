package formtest_test

import (
	"fmt"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/formtest"
)

// recorder keeps what a check reports.
type recorder struct {
	testing.TB
	failures []string
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(format string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(format, args...))
}

// TestCheck: a new member is reported at every depth, a member that went as well, and what several texts have together is enough.
func TestCheck(t *testing.T) {
	type pebble struct {
		Size  int      `json:"size"`
		Names []string `json:"names,omitempty"`
		note  string
	}
	type beach struct {
		Version int                `json:"version"`
		All     map[string]*pebble `json:"all"`
		List    []pebble           `json:"list,omitempty"`
		Skipped string             `json:"-"`
	}
	_ = pebble{}.note
	for _, c := range []struct {
		golden []string
		want   string
	}{
		{[]string{`{"version":1,"all":{"a":{"size":1},"b":{"names":["x"]}},"list":[{"size":1,"names":[]}]}`}, "[]"},
		{[]string{`{"version":1,"all":{"a":{"size":1}}}`, `{"list":[{"names":[]}],"all":{"a":{"names":[]}}}`},
			"[the golden file has no /list/*/size: a new member needs a new version of the form, and a golden file with it]"},
		{[]string{`{"version":1,"all":{"a":{"size":1,"names":[]}},"list":[{"size":1,"names":[]}],"gone":1}`},
			`[formtest_test.beach does not take what is stored: the name is not known at "/gone" (byte 78); keep the old type for the old version, and raise the version]`},
	} {
		r := &recorder{TB: t}
		var texts [][]byte
		for _, g := range c.golden {
			texts = append(texts, []byte(g))
		}
		formtest.Check(r, beach{}, texts...)
		if got := fmt.Sprint(r.failures); got != c.want {
			t.Errorf("%v: %s\nwant %s", c.golden, got, c.want)
		}
	}
}
