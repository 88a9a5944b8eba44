package main

import (
	"maps"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/seeds"
)

const events = `{"Action":"start","Package":"github.com/mcpvisor/mcpvisor/a/b"}
{"Action":"output","Package":"github.com/mcpvisor/mcpvisor/a/b","Test":"TestBad","Output":"it broke\n"}
{"Action":"output","Package":"github.com/mcpvisor/mcpvisor/a/b","Test":"TestGood/sub","Output":"chatter\n"}
{"Action":"pass","Package":"github.com/mcpvisor/mcpvisor/a/b","Test":"TestGood/sub"}
{"Action":"pass","Package":"github.com/mcpvisor/mcpvisor/a/b","Test":"TestGood"}
{"Action":"skip","Package":"github.com/mcpvisor/mcpvisor/a/b","Test":"TestSkipped"}
{"Action":"fail","Package":"github.com/mcpvisor/mcpvisor/a/b","Test":"TestBad"}
{"Action":"fail","Package":"github.com/mcpvisor/mcpvisor/a/b"}
{"ImportPath":"github.com/mcpvisor/mcpvisor/c","Action":"build-output","Output":"undefined: x\n"}
plain words of the go command
`

func TestOutcomesAreThoseOfTopLevelTests(t *testing.T) {
	var shown strings.Builder
	got, err := outcomesIn(strings.NewReader(events), &shown)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"a/b.TestGood": "pass", "a/b.TestSkipped": "skip", "a/b.TestBad": "fail"}
	if !maps.Equal(got, want) {
		t.Errorf("outcomes %v, want %v", got, want)
	}
	if shown.String() != "it broke\nundefined: x\nplain words of the go command\n" {
		t.Errorf("shown: %q", shown.String())
	}
}

func TestAFeatureIsAsGoodAsTheWorstOfItsTests(t *testing.T) {
	outcomes := map[string]string{"g": "pass", "s": "skip", "b": "fail"}
	for _, c := range []struct {
		waits string
		tests []string
		want  string
	}{
		{"", []string{"g"}, passes},
		{"", []string{"g", "s"}, skipped},
		{"", []string{"s", "b"}, fails},
		{"", []string{"b", "s"}, fails},
		{"", []string{"g", "never ran"}, fails},
		{"", nil, noTest},
		{"web page", nil, waits},
	} {
		if got := stateOf(seeds.Feature{Waits: c.waits}, c.tests, outcomes); got != c.want {
			t.Errorf("%v gives %s, want %s", c.tests, got, c.want)
		}
	}
}
