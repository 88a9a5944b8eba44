package plan_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/install/plan"
)

// seeds are the documents of the stories.
func seeds(f *testing.F) {
	for _, file := range []string{"testdata/packages.txtar", "testdata/remotes.txtar"} {
		a, err := txtar.ParseFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for _, part := range a.Files {
			if strings.HasSuffix(part.Name, "/server.json") {
				f.Add(string(part.Data))
			}
		}
	}
}

// FuzzDocument: whatever a registry sends, each way is a spec or an error with a class, never a panic; nothing that the
// publisher wrote is a reference to the environment; no argument before the package is an option that the publisher put in
// the place of the package.
func FuzzDocument(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, document string) {
		s, err := plan.Read([]byte(document))
		if err != nil {
			classed(t, err)
			return
		}
		_, err = plan.Choose(&s, "", everything)
		classed(t, err)
		for _, w := range s.Ways() {
			fill := plan.ValueSource{Ask: func(in plan.Input) ([]string, error) {
				if len(in.Choices) > 0 {
					return in.Choices[:1], nil
				}
				return []string{"1"}, nil
			}}
			r, err := plan.Build(w, fill, everything, &plan.Bundle{Dir: "/bundle", Has: func(string) bool { return true }})
			classed(t, err)
			all := []string{r.Spec.Command, r.Spec.URL, r.Spec.Cwd}
			all = append(all, r.Spec.Args...)
			for k, v := range r.Spec.Env {
				all = append(all, k, v)
			}
			for k, v := range r.Spec.Headers {
				all = append(all, k, v)
			}
			if text := strings.Join(all, "\n"); strings.Contains(text, "${") || strings.ContainsRune(text, 0) {
				t.Fatalf("a reference of the publisher's: %q", all)
			}
			if err == nil && w.Kind == plan.NPM && r.Spec.Command != "" {
				for _, word := range r.Spec.Args[:slices.IndexFunc(r.Spec.Args, func(a string) bool { return strings.HasPrefix(a, w.Package.Identifier) })] {
					if !slices.Contains(npmWords, word) && !strings.HasPrefix(word, "--registry=http") {
						t.Fatalf("npx is given %q", word)
					}
				}
			}
			if err == nil && w.Remote == nil && r.Spec.Command == "" && r.Spec.URL == "" {
				t.Fatal("nothing to start, and no error")
			}
		}
	})
}

// npmWords are all that may stand before the package.
var npmWords = strings.Fields("-y -q --quiet --prefer-offline --prefer-online --offline")

func classed(t *testing.T, err error) {
	t.Helper()
	var e *messages.Error
	if err != nil && (!errors.As(err, &e) || e.Class == messages.ClassNone || e.Text == "" || e.Err == nil) {
		t.Fatalf("%#v", err)
	}
	if err != nil && messages.Printable(err.Error()) != err.Error() {
		t.Fatalf("%q", err)
	}
}

// FuzzManifest: the same for the manifest of a bundle.
func FuzzManifest(f *testing.F) {
	f.Add(`{"server":{"type":"node","entry_point":"server/index.js","mcp_config":{"command":"node","args":["${__dirname}/server/index.js",` +
		`"${user_config.dirs}"],"env":{"K":"${user_config.key}","H":"${HOME}"}}},"user_config":{"dirs":{"type":"directory","multiple":true,` +
		`"required":true,"default":["${HOME}/Desktop"]},"key":{"type":"string","sensitive":true,"required":true},"n":{"type":"number","default":1}}}`)
	f.Add(`{"server":{"type":"binary","entry_point":"bin/x","mcp_config":{"command":"../../bin/sh","platform_overrides":{"linux":{"command":"/bin/sh"}}}}}`)
	f.Add(`{"server":{"type":"uv","entry_point":"src/server.py"},"compatibility":{"platforms":["linux"]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		m, err := plan.ReadManifest([]byte(text))
		if err != nil {
			classed(t, err)
			return
		}
		for _, p := range m.Programs() {
			if strings.HasPrefix(p, "/") || strings.HasPrefix(p, "..") {
				t.Fatalf("a program outside: %q", p)
			}
		}
		b := plan.Bundle{Dir: "/bundle", Manifest: m, Has: func(file string) bool { return strings.HasSuffix(file, "x") }}
		way := plan.Way{Kind: plan.MCPB, Package: &plan.Package{RegistryType: plan.MCPB, Transport: plan.Transport{Type: "stdio"}}}
		r, err := plan.Build(way, plan.ValueSource{Ask: func(plan.Input) ([]string, error) { return []string{"1"}, nil }}, everything, &b)
		classed(t, err)
		if s := r.Spec.Command; strings.ContainsAny(s, `/\`) && !strings.HasPrefix(s, "/bundle/") {
			t.Fatalf("a command outside: %q", s)
		}
		if all := strings.Join(r.Spec.Args, " "); strings.Contains(all, "${") {
			t.Fatalf("a reference of the publisher's: %q", all)
		}
	})
}
