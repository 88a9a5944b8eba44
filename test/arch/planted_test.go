package arch_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/arch"
)

func ours(path string) string { return arch.Module + "/" + path }

// Each planted violation is found, once, with its reason; the same graph without it is clean.
func TestPlantedViolationsAreFound(t *testing.T) {
	const proto = "github.com/asynkron/protoactor-go"
	clean := map[string]arch.Package{
		"messages":           {Imports: []string{"time", "google.golang.org/protobuf/proto"}},
		"actors/lifecycle":   {Imports: []string{"time", ours("messages"), "net/url"}},
		"supervisor/config":  {Imports: []string{"encoding/json"}},
		"transports":         {Imports: []string{"net/http", ours("messages")}},
		"transports/session": {Imports: []string{ours("transports")}},
		"actors":             {Imports: []string{proto + "/actor", ours("actors/lifecycle")}},
		"supervisor":         {Imports: []string{ours("actors")}, Deps: []string{proto + "/actor"}},
		"supervisor/remote":  {Imports: []string{ours("supervisor")}, Deps: []string{"google.golang.org/grpc/codes"}},
		"supervisor/control": {Imports: []string{ours("supervisor"), "net"}},
		"cmd/mcpvisor":       {Imports: []string{ours("supervisor"), ours("test/servers")}},
		"test/servers":       {Imports: []string{"os"}},
		"test/e2e":           {Imports: []string{ours("cmd/mcpvisor"), ours("test/peers")}},
		"test/peers":         {Imports: []string{"testing"}, Deps: []string{"testing"}},
	}
	if bad := arch.Check(arch.Table, arch.ReachLimits, clean); len(bad) > 0 {
		t.Fatalf("the clean graph is not: %q", bad)
	}
	for _, c := range []struct {
		path, imports, reaches string
		want                   string
	}{
		{path: "unheard/of", imports: "fmt", want: "in no layer"},
		{path: ".", imports: "fmt", want: "in no layer"},
		{path: "messages", imports: ours("transports"), want: "strictly lower"},
		{path: "messages", imports: proto + "/actor", want: "without an actor system"},
		{path: "actors/lifecycle", imports: ours("supervisor/config"), want: "strictly lower"},
		{path: "actors/lifecycle", imports: "os/exec", want: "passed in"},
		{path: "actors/lifecycle", imports: "net", want: "network"},
		{path: "supervisor/config", imports: "log/slog", want: "not logged"},
		{path: "supervisor/config", imports: "go.uber.org/zap/zapcore", want: "not logged"},
		{path: "transports", imports: ours("transports/session"), want: "strictly lower"},
		{path: "transports/session", imports: proto + "/actor", want: "without an actor system"},
		{path: "actors", imports: ours("supervisor/restart/x"), want: ""},
		{path: "actors", imports: ours("supervisor"), want: "strictly lower"},
		{path: "actors", imports: "google.golang.org/grpc/status", want: "remote's business"},
		{path: "supervisor", imports: ours("supervisor/remote"), want: "strictly lower"},
		{path: "supervisor", reaches: "google.golang.org/grpc/codes", want: "9 MB"},
		{path: "supervisor", reaches: proto + "/remote", want: "9 MB"},
		{path: "supervisor", reaches: "testing", want: "testing package"},
		{path: "supervisor/remote", imports: ours("cmd/mcpvisor"), want: "strictly lower"},
		{path: "supervisor/control", imports: ours("supervisor/gateway"), want: "imports supervisor/gateway (layer 4b)"},
		{path: "supervisor/remote", imports: ours("supervisor/control"), want: "(layer 4a, step 1)"},
		{path: "transports/session", imports: ours("transports/serve"), want: "(layer 2, step 2)"},
		{path: "supervisor", imports: ours("supervisor/supervisortest"), want: "strictly lower"},
		{path: "supervisor", imports: ours("test/peers"), want: "strictly lower"},
		{path: "cmd/mcpvisor", imports: ours("test/peers"), want: "strictly lower"},
		{path: "test/servers", imports: ours("messages"), want: "strictly lower"},
	} {
		graph := map[string]arch.Package{}
		for path, p := range clean {
			graph[path] = p
		}
		p := graph[c.path]
		if c.imports != "" {
			p.Imports = append(slices.Clone(p.Imports), c.imports)
		}
		if c.reaches != "" {
			p.Deps = append(slices.Clone(p.Deps), c.reaches)
		}
		graph[c.path] = p
		bad := arch.Check(arch.Table, arch.ReachLimits, graph)
		if c.want == "" {
			if len(bad) > 0 { // a package that does not exist is the compiler's to refuse
				t.Errorf("%+v: %q", c, bad)
			}
			continue
		}
		if len(bad) != 1 || !strings.Contains(bad[0], c.want) || !strings.HasPrefix(bad[0], c.path) {
			t.Errorf("%s with %s%s: found %q, want one violation with %q", c.path, c.imports, c.reaches, bad, c.want)
		}
	}
}

// Each layer has a height of its own, and a height between two belongs to the lower one.
func TestAHeightLiesInALayer(t *testing.T) {
	for i, layer := range arch.Layers {
		if i > 0 && layer.Height <= arch.Layers[i-1].Height {
			t.Errorf("layer %s is not above layer %s", layer.Number, arch.Layers[i-1].Number)
		}
		for step := range 2 {
			if got := arch.LayerOf(layer.Height + step); got.Number != layer.Number {
				t.Errorf("height %d lies in layer %s, want %s", layer.Height+step, got.Number, layer.Number)
			}
		}
	}
}

// A row whose package has gone, and a planned package that exists, are found.
func TestAPlantedDeadRowIsFound(t *testing.T) {
	table := []arch.Row{{Packages: []string{"messages", "actors/...", "transports/serve", "supervisor/gone"}}}
	graph := map[string]arch.Package{"messages": {}, "actors/lifecycle": {}, "transports/serve": {}}
	bad := arch.Dead(table, []string{"transports/serve", "supervisor/web"}, graph)
	want := []string{"supervisor/gone does not exist", "supervisor/web is planned and has no row", "transports/serve exists"}
	if !slices.EqualFunc(bad, want, strings.HasPrefix) {
		t.Errorf("found %q, want %q", bad, want)
	}
}

func TestPlantedImpurityIsFound(t *testing.T) {
	for _, c := range []struct {
		source string
		want   string // of the one violation; empty for none
	}{
		{`import "time"; var x = time.Now()`, "time.Now"},
		{`import clock "time"; var x = clock.Since`, "clock.Since"},
		{`import "time"; func f() { time.AfterFunc(1, nil) }`, "time.AfterFunc"},
		{`import "time"; func f(t time.Time) time.Time { return t.Add(time.Second) }`, ""},
		{`import "time"; func f() { var time struct{ Now int }; _ = time.Now }; var d time.Duration`, ""},
		{`import . "time"; var x = Now()`, "with a dot"},
		{`import "math/rand"; var x = rand.Intn(3)`, "rand.Intn"},
		{`import "math/rand/v2"; var x = rand.N(3)`, "rand.N"},
		{`import "math/rand/v2"; func f(r *rand.Rand) int { return r.IntN(3) }; var y = rand.New(rand.NewPCG(1, 2))`, ""},
		{`import "path/filepath"; var x, _ = filepath.Abs("x")`, "filepath.Abs"},
		{`import "path/filepath"; var x = filepath.Join("x")`, ""},
		{`func f() { go f() }`, "goroutine"},
	} {
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "x.go", "package x; "+c.source, 0)
		if err != nil {
			t.Fatal(err)
		}
		bad := arch.Purity(fset, f)
		switch {
		case c.want == "" && len(bad) > 0:
			t.Errorf("%s: found %q, want nothing", c.source, bad)
		case c.want != "" && (len(bad) != 1 || !strings.Contains(bad[0], c.want)):
			t.Errorf("%s: found %q, want %q", c.source, bad, c.want)
		}
	}
}

func TestAPlantedFolderIsFound(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "README.md", ".golangci.yml", "cpu.prof", "docs"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("/bin/\n*.prof\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	extra, err := arch.TopLevel(dir)
	if err != nil || !slices.Equal(extra, []string{"docs"}) {
		t.Errorf("found %q, %v; want docs alone", extra, err)
	}
}
