package arch_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Why a file may decode with encoding/json, which takes names of another case and the last of equal ones.
const (
	ownFile     = "it reads a file, a socket or a process of mcpvisor's own: who can write there can write the program's state"
	personsOwn  = "it reads what the person has typed, configured or run, and refuses names that it does not know by itself"
	scalarsOnly = "it decodes single texts, numbers, lists or maps: no field has a name that could be folded"
	validOnly   = "it asks whether bytes are JSON, and decodes none"
	harness     = "it is a harness for tests: what it reads, a test has written"
	shownOnly   = "what it reads is shown or counted, and nobody decides on it"
)

// decoders are the files outside of test that decode with encoding/json.
var decoders = map[string]string{
	"cmd/mcpvisor/internal/ask/answers.go":      personsOwn,
	"cmd/mcpvisor/internal/ask/fields.go":       validOnly,
	"cmd/mcpvisor/internal/ask/sample.go":       personsOwn,
	"cmd/mcpvisor/internal/call/call.go":        personsOwn,
	"cmd/mcpvisor/internal/call/prompt.go":      personsOwn,
	"cmd/mcpvisor/internal/chaos/report.go":     ownFile,
	"cmd/mcpvisor/internal/inspect/logs.go":     scalarsOnly,
	"cmd/mcpvisor/internal/manage/add_entry.go": personsOwn,
	"cmd/mcpvisor/internal/schema/args.go":      personsOwn,

	"actors/logs.go":                           validOnly,
	"messages/isolation.go":                    scalarsOnly,
	"messages/spec.go":                         scalarsOnly,
	"messages/status.go":                       scalarsOnly,
	"supervisor/audit/arguments.go":            scalarsOnly,
	"supervisor/audit/record.go":               ownFile,
	"supervisor/bridge.go":                     scalarsOnly,
	"supervisor/bridge_resources.go":           scalarsOnly,
	"supervisor/config/audit.go":               scalarsOnly,
	"supervisor/config/auth.go":                scalarsOnly,
	"cmd/mcpvisor/internal/edit/edit.go":       validOnly,
	"cmd/mcpvisor/internal/edit/proof.go":      validOnly,
	"supervisor/config/fields.go":              scalarsOnly,
	"supervisor/config/foreign/toml.go":        validOnly,
	"supervisor/config/value.go":               scalarsOnly,
	"supervisor/control/client.go":             ownFile,
	"supervisor/control/journal.go":            ownFile,
	"supervisor/internal/requests/handler.go":  ownFile,
	"supervisor/internal/toolcache/cache.go":   ownFile,
	"supervisor/discover/rules.go":             personsOwn,
	"supervisor/install/plan/document.go":      scalarsOnly,
	"supervisor/install/plan/settings.go":      personsOwn,
	"supervisor/output/checker.go":             scalarsOnly,
	"supervisor/pins/difference.go":            shownOnly,
	"supervisor/pins/version1.go":              "it decodes into a value without fields, as version 1 did, and refuses a doubled name before",
	"supervisor/supervisortest/connection.go":  harness,
	"transports/auth/helper.go":                personsOwn,
	"transports/fault/flow.go":                 harness,
	"transports/fault/lists.go":                harness,
	"transports/fault/message.go":              harness,
	"transports/internal/origin/error.go":      shownOnly,
	"transports/internal/conntest/client.go":   harness,
	"transports/internal/conntest/server.go":   harness,
	"transports/internal/conntest/web_peer.go": harness,
	"transports/internal/launcher/launch.go":   ownFile,
	"transports/internal/launcher/main.go":     ownFile,
	"transports/internal/lines/splitter.go":    validOnly,
	"transports/mcpgo/requests.go":             "mcp-go's own answers, in one process with it",
	"transports/mcpgo/serve.go":                "mcp-go's own answers, in one process with it",
	"transports/session/call.go":               validOnly,
	"transports/transporttest/both_ways.go":    harness,
	"transports/transporttest/delivery.go":     harness,
	"transports/transporttest/harness.go":      harness,
	"transports/transporttest/recorder.go":     harness,
	"transports/transporttest/script.go":       harness,
}

// readers are beginnings of import paths of libraries that read JSON by themselves. What is imported of them stands in foreign.
var readers = []string{
	"golang.org/x/oauth2", "github.com/modelcontextprotocol/", "github.com/mark3labs/", "github.com/golang-jwt/", "github.com/santhosh-tekuri/",
	"github.com/tailscale/hujson", "github.com/go-json-experiment/", "github.com/json-iterator/", "github.com/goccy/go-json",
	"github.com/bytedance/sonic", "github.com/tidwall/", "github.com/buger/jsonparser", "github.com/segmentio/encoding",
	"encoding/json/",
}

// foreign are the libraries (a path, and what stands below it) that decode bytes of strangers for us, by their own readers,
// and why they may.
var foreign = map[string]string{
	"golang.org/x/oauth2":                            "answers of token endpoints; transports/auth judges what it uses of them",
	"github.com/modelcontextprotocol/go-sdk/oauthex": "metadata of authorization servers; addresses and issuer are judged after it",
	"github.com/golang-jwt/jwt/v5":                   "tokens that we write, and never read",
	"github.com/mark3labs/mcp-go":                    "servers in one process with us, written by the program that embeds them",
	"github.com/modelcontextprotocol/go-sdk/mcp":     "servers in one process with us, and clients of the gateway, who are the person's own",
	"github.com/modelcontextprotocol/go-sdk/jsonrpc": "as mcp of the same library",
	"github.com/santhosh-tekuri/jsonschema/v6":       "schemas as maps, by exact names; doubled ones are refused before it reads them",
	"github.com/tailscale/hujson":                    "configuration files, as a tree that keeps every member",
	"github.com/go-json-experiment/json":             "the reader itself",
}

// TestBytesOfStrangersHaveOneReader: whoever decodes with encoding/json says why that cannot be used to show one thing to a
// person and another to a program. Bytes of servers and registries are read by messages/rawjson.
func TestBytesOfStrangersHaveOneReader(t *testing.T) {
	found := map[string]bool{}
	eachSource(t, func(name string, f *ast.File, _ *token.FileSet) {
		for _, spec := range f.Imports {
			library, _ := strconv.Unquote(spec.Path.Value)
			if slices.ContainsFunc(readers, func(r string) bool { return strings.HasPrefix(library, r) }) {
				for listed := range foreign {
					if library == listed || strings.HasPrefix(library, listed+"/") {
						found[listed], library = true, ""
						break
					}
				}
				if library != "" {
					t.Errorf("%s imports %s, which reads JSON by itself: say in foreign why no stranger gains by it", name, library)
				}
			}
		}
		if decodes(f) {
			found[name] = true
			if decoders[name] == "" {
				t.Errorf("%s decodes with encoding/json: use messages/rawjson, or say in decoders why no stranger gains by it", name)
			}
		}
	})
	for name := range decoders {
		if !found[name] {
			t.Errorf("%s decodes nothing with encoding/json any more: take it out of decoders", name)
		}
	}
	for library := range foreign {
		if !found[library] {
			t.Errorf("%s is not imported any more: take it out of foreign", library)
		}
	}
}

// eachSource visits the files outside of test that are no tests.
func eachSource(t *testing.T, visit func(name string, f *ast.File, fset *token.FileSet)) {
	t.Helper()
	top := root(t)
	err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(top, path)
		name = filepath.ToSlash(name)
		switch {
		case d.IsDir() && (name == "test" || strings.HasPrefix(d.Name(), ".") && name != "." || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir(), !strings.HasSuffix(name, ".go"), strings.HasSuffix(name, "_test.go"):
			return nil
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, path, nil, 0)
		if err == nil {
			visit(name, f, fset)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// decodes reports whether a file uses a function of encoding/json that reads.
func decodes(f *ast.File) (uses bool) {
	local := ""
	for _, spec := range f.Imports {
		if path, _ := strconv.Unquote(spec.Path.Value); path == "encoding/json" {
			if local = "json"; spec.Name != nil {
				local = spec.Name.Name
			}
		}
	}
	if local == "" {
		return false
	}
	ast.Inspect(f, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && x.Name == local {
			switch sel.Sel.Name {
			case "Unmarshal", "NewDecoder", "Valid":
				uses = true
			}
		}
		return true
	})
	return uses
}
