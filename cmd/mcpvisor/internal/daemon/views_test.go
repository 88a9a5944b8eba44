package daemon

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// An agent gets the view that it names, or is told why there is none, with the nearest name.
func TestWhichViewsThereAre(t *testing.T) {
	views := &config.Gateway{Views: map[string]config.View{"work": {}, "home": {}}, Prefix: "never"}
	for _, c := range []struct {
		name  string
		found *config.Gateway
		want  []string // nil: it is there
	}{
		{"", nil, nil}, {"", &config.Gateway{Invalid: "x"}, nil}, {"work", views, nil},
		{"worc", views, []string{`no view "worc"`, `did you mean "work"?`}},
		{"completely else", views, []string{`no view "completely else" in the configuration`}},
		{"work", nil, []string{"missing or broken"}},
		{"work", &config.Gateway{Invalid: "x", Views: views.Views}, []string{"missing or broken"}},
	} {
		err := checkView(c.name, discover.Configuration{Set: config.Set{Gateway: c.found}})
		if (err == nil) != (c.want == nil) {
			t.Errorf("%q: %v", c.name, err)
		}
		for _, part := range c.want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%q: there is no %q in %v", c.name, part, err)
			}
		}
		if err != nil && c.name == "completely else" && strings.Contains(err.Error(), "did you mean") {
			t.Errorf("%q: %v", c.name, err)
		}
	}
}

// Views that cannot be read stay as they were, and the log says why; files that say nothing of agents have none.
func TestViewsThatCannotBeReadStay(t *testing.T) {
	var log bytes.Buffer
	d := &daemon{options: &cli.Options{Streams: terminal.Streams{Err: &log}}}
	f := &followedViews{}
	f.setGateway(d, &config.Gateway{Views: map[string]config.View{"work": {}}})
	if len(f.views) != 1 || log.Len() != 0 {
		t.Errorf("%v, %s", f.views, log.String())
	}
	f.setGateway(d, &config.Gateway{Invalid: "line 7 is odd", Views: map[string]config.View{"other": {}, "x": {}}})
	if _, ok := f.views["work"]; !ok || len(f.views) != 1 || !strings.Contains(log.String(), "line 7 is odd") {
		t.Errorf("%v, %s", f.views, log.String())
	}
	if f.setGateway(d, nil); len(f.views) != 0 {
		t.Errorf("%v", f.views)
	}
}

// describing is the service of a gateway.
type describing struct{ serve.Service }

func (describing) Describe(*serve.Session) (serve.Description, *serve.Error) {
	return serve.Description{}, nil
}

// The roots of an agent that has declared any count for as long as it is there, once, in either era.
func TestTheRootsOfAnAgentCountWhileItIsThere(t *testing.T) {
	for declared, want := range map[string]int{`{}`: 0, `{"roots":null}`: 0, `{"roots":{}}`: 1, `{"roots":{"listChanged":true}}`: 1, ``: 0} {
		roots := &agentRoots{}
		w := &rootsWatch{Service: describing{}, roots: roots, dir: "/work"}
		for range 2 {
			if _, e := w.Describe(&serve.Session{Capabilities: []byte(declared)}); e != nil {
				t.Fatal(e)
			}
		}
		if len(roots.agents) != want || want == 1 && roots.agents["/work"] != 1 {
			t.Errorf("%s: %v", declared, roots.agents)
		}
		if w.end(); len(roots.agents) != 0 {
			t.Errorf("%s, and it has gone: %v", declared, roots.agents)
		}
	}
}
