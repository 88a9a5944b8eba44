package scale

import (
	"bytes"
	"maps"
	"runtime/pprof"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/supervisor"
)

// What runs for one server alone is found by its name in a profile, and nothing else is: not the turns of actors, whoever
// woke them.
func TestGoroutinesBearTheLabelsOfTheirServer(t *testing.T) {
	web, err := NewWeb()
	if err != nil {
		t.Fatal(err)
	}
	defer web.Close()
	all := serverSpecs("in process", 0, nil)
	for _, kind := range []string{"in process", "stdio", "http with a stream"} {
		for _, spec := range serverSpecs(kind, 1, web) {
			maps.Copy(all, map[string]supervisor.Spec{"of " + kind: spec})
		}
	}
	ctx := bounded(t)
	m, err := startManager(ctx, all)
	if err != nil {
		t.Fatal(err)
	}
	defer closeWithin(m, &err)
	if err := awaitConnected(ctx, m); err != nil {
		t.Fatal(err)
	}
	var text bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&text, 1); err != nil {
		t.Fatal(err)
	}
	for label, in := range map[string]string{
		`"server":"of stdio", "transport":"stdio"`:             "readOutput",
		`"server":"of in process", "transport":"sdk"`:          "scale.Tiny",
		`"server":"of http with a stream", "transport":"http"`: "web.(*httpConn)",
	} {
		found := false
		for group := range strings.SplitSeq(text.String(), "\n\n") {
			if !strings.Contains(group, label) {
				continue
			}
			found = found || strings.Contains(group, in)
			if strings.Contains(group, "actor.(*defaultMailbox)") {
				t.Errorf("an actor's turn bears %s:\n%s", label, group)
			}
		}
		if !found {
			t.Errorf("no goroutine in %s bears %s:\n%s", in, label, text.String())
		}
	}
}
