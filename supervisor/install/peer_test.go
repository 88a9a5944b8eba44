package install_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/install"
	"github.com/mcpvisor/mcpvisor/supervisor/install/plan"
	"github.com/mcpvisor/mcpvisor/test/peers"
)

// TestTheRegistrysOwnDocuments: every way of every document that the registry's own tests use becomes a spec, with whatever
// is asked for answered, or is refused for the reason here.
func TestTheRegistrysOwnDocuments(t *testing.T) {
	refused := map[string]string{
		"io.modelcontextprotocol.anonymous/embedded-mcp": "names neither a package nor a remote; see https://anonymous.modelcontextprotocol.io/embedded-mcp-guide",
	}
	// It reaches everything that listens on this machine, which is for the person to decide.
	withheld := map[string]string{"io.github.example/database-manager": "docker is to be given --network host"}
	all := peers.RegistryDocuments(t)
	if len(all) < 15 {
		t.Fatalf("only %d documents", len(all))
	}
	kinds := map[string]int{}
	for _, document := range all {
		s, err := plan.Read(document)
		if err != nil {
			t.Errorf("%v\n%s", err, document)
			continue
		}
		if _, err := plan.Choose(&s, "", plan.Machine{}); err != nil {
			if want := refused[s.Name]; want == "" || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", s.Name, err)
			}
			continue
		}
		for _, w := range s.Ways() {
			kinds[w.Kind]++
			if w.Kind == plan.MCPB {
				continue // its bundle is elsewhere
			}
			answer := func(in plan.Input) ([]string, error) {
				if len(in.Choices) > 0 {
					return in.Choices[:1], nil
				}
				return []string{"typed"}, nil
			}
			r, err := plan.Build(w, plan.ValueSource{Ask: answer}, plan.Machine{OS: "linux", Home: "/home/ann"}, nil)
			if want := withheld[s.Name]; want != "" && w.Kind == plan.OCI && err != nil && strings.Contains(err.Error(), want) {
				delete(withheld, s.Name)
				continue
			}
			if err != nil || r.Spec.Command == "" && r.Spec.URL == "" {
				t.Errorf("%s, %s: %+v, %v", s.Name, w, r.Spec, err)
			}
		}
	}
	if len(withheld) > 0 {
		t.Errorf("not refused: %v", withheld)
	}
	for _, kind := range plan.Kinds {
		if kinds[kind] == 0 {
			t.Errorf("no document has a %s: this test no longer shows that one works", kind)
		}
	}
}

// TestTheRegistryItself is asked what the command asks: pages, words, names, versions.
func TestTheRegistryItself(t *testing.T) {
	all := peers.RegistryDocuments(t)
	names := map[string]bool{}
	unique := slices.DeleteFunc(all, func(d json.RawMessage) bool { // the documentation has some twice
		key := string(d[:0])
		s, err := plan.Read(d)
		if err == nil {
			key = s.Name + " " + s.Version
		}
		had := names[key] || strings.HasPrefix(s.Name, "io.modelcontextprotocol") // a namespace that it keeps for itself
		names[key] = true
		return had
	})
	r, err := install.New(install.Options{Base: peers.StartRegistry(t, unique)})
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	q := install.Query{Word: "DOMDOMEGG", Limit: 1}
	for {
		p, err := r.Search(t.Context(), q)
		if err != nil || p.Skipped != 0 || len(found) > 5 {
			t.Fatalf("%v, %+v", err, p)
		}
		for _, e := range p.Entries {
			found = append(found, e.Name+" "+e.Version)
			if e.Status != install.Active || !e.Latest || e.Published.IsZero() {
				t.Errorf("%+v", e)
			}
		}
		if q.Cursor = p.Next; q.Cursor == "" {
			break
		}
	}
	if want := []string{"io.github.domdomegg/airtable-mcp-server 1.7.3", "io.github.domdomegg/time-mcp-nuget 1.0.8",
		"io.github.domdomegg/time-mcp-pypi 1.0.6"}; !slices.Equal(found, want) {
		t.Errorf("%q", found)
	}
	for name, want := range map[string]string{
		"airtable": "1.7.3", "airtable@1.7.2": "1.7.2", "io.github.domdomegg/airtable-mcp-server": "1.7.3",
		"io.github.domdomegg/airtable-mcp-server@1.7.2": "1.7.2",
	} {
		e, err := r.Find(t.Context(), name)
		if err != nil || e.Version != want || e.Name != "io.github.domdomegg/airtable-mcp-server" {
			t.Errorf("%s: %+v, %v", name, e, err)
			continue
		}
		made, err := r.Prepare(t.Context(), e, install.Request{Way: "npm", ValueSource: plan.ValueSource{
			GivenValues: plan.GivenValues{Env: map[string]string{"AIRTABLE_API_KEY": "${KEY}"}}}})
		if err != nil || made.Name != "airtable" || !slices.Equal(made.Spec.Args, []string{"-y", "airtable-mcp-server@" + want}) ||
			made.Spec.Env["AIRTABLE_API_KEY"] != "${KEY}" {
			t.Errorf("%s: %+v, %v", name, made, err)
		}
	}
	for _, name := range []string{"io.github.domdomegg/airtable-mcp-server@9.9.9", "io.github.domdomegg/nobody", "nobody-at-all"} {
		if e, err := r.Find(t.Context(), name); !errors.Is(err, plan.ErrName) {
			t.Errorf("%s: %+v, %v", name, e, err)
		}
	}
	if _, err := r.Find(t.Context(), "ti"); messages.ClassOf(err) != messages.ClassInvalid || !strings.Contains(err.Error(), "at least 3 characters") {
		t.Errorf("a word that is too short: %v", err)
	}
}
