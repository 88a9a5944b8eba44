package e2e_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/install"
	"github.com/mcpvisor/mcpvisor/supervisor/install/plan"
	"github.com/mcpvisor/mcpvisor/test/peers"
)

// newRegistry is a registry that has one server, a/demo, and whatever files the paths name.
func newRegistry(t *testing.T, packages func(url string) string, files map[string][]byte) *install.Registry {
	t.Helper()
	var s *httptest.Server
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if file, ok := files[r.URL.Path]; ok {
			_, _ = w.Write(file)
			return
		}
		document := `{"server":{"name":"io.github.o/demo-mcp-server","version":"1.0.0","description":"d","packages":[` +
			packages(s.URL) + `]}}`
		if r.URL.Path == "/v0.1/servers" {
			document = `{"servers":[` + document + `],"metadata":{"count":1}}`
		}
		fmt.Fprint(w, document)
	}))
	t.Cleanup(s.Close)
	client := s.Client()
	t.Cleanup(client.CloseIdleConnections)
	r, err := install.New(install.Options{Base: s.URL, HTTP: client.Transport, Cache: t.TempDir(), Bundles: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// mustInstall is what a person begins with: a short name, and the values that are asked for.
func mustInstall(t *testing.T, r *install.Registry, fill plan.ValueSource) install.Installation {
	t.Helper()
	e, err := r.Find(t.Context(), "demo")
	if err != nil {
		t.Fatal(err)
	}
	made, err := r.Prepare(t.Context(), e, install.Request{ValueSource: fill})
	if err != nil || made.Name != "demo" {
		t.Fatalf("%+v, %v", made, err)
	}
	return made
}

func connectInstalled(t *testing.T, made install.Installation) *supervisor.Manager {
	t.Helper()
	m := startManager(t, supervisor.Config{})
	if err := m.Connect(testContext(t, bound), made.Name, made.Spec); err != nil {
		t.Fatal(err)
	}
	awaitConnected(t, m, "demo")
	return m
}

// TestAnNpmPackageIsInstalledByName: the entry of a registry becomes a server that npx runs, which answers a call.
func TestAnNpmPackageIsInstalledByName(t *testing.T) {
	everything := peers.NPM(t)
	checkLeaks(t)
	dir, version := everything.Package(t, "@modelcontextprotocol/server-everything")
	r := newRegistry(t, func(string) string {
		return `{"registryType":"npm","identifier":"@modelcontextprotocol/server-everything","version":"` + version + `",` +
			`"transport":{"type":"stdio"},"runtimeArguments":[{"type":"named","name":"--offline"}],` +
			`"packageArguments":[{"type":"positional","value":"{how}","variables":{"how":{"isRequired":true}}}],` +
			`"environmentVariables":[{"name":"DEMO_KEY","isRequired":true,"isSecret":true}]}`
	}, nil)
	made := mustInstall(t, r, plan.ValueSource{Ask: func(in plan.Input) ([]string, error) {
		return []string{map[string]string{"how": "stdio", "DEMO_KEY": "typed"}[in.Name]}, nil
	}})
	made.Spec.Cwd = dir // npx takes the package from where it is installed already, and asks no registry
	m := connectInstalled(t, made)
	checkText(t, m, "demo", "echo", map[string]any{"message": "hello"}, "Echo: hello")
}

// TestABundleIsInstalledByName: it is downloaded, verified and unpacked, and what it holds is connected and called.
func TestABundleIsInstalledByName(t *testing.T) {
	checkLeaks(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := "server/demo"
	if strings.HasSuffix(self, ".exe") {
		program += ".exe"
	}
	var bundle bytes.Buffer
	w := zip.NewWriter(&bundle)
	file, err := w.Create("manifest.json")
	if err == nil {
		_, err = fmt.Fprintf(file, `{"manifest_version":"0.3","name":"demo","server":{"type":"binary","entry_point":%q,`+
			`"mcp_config":{"command":"${__dirname}/%s","args":["mcp-fixture","${user_config.kind}"]}},`+
			`"user_config":{"kind":{"type":"string","required":true}}}`, program, program)
	}
	if err == nil {
		file, err = w.CreateHeader(&zip.FileHeader{Name: program, Method: zip.Store})
	}
	if err == nil {
		var in *os.File
		if in, err = os.Open(self); err == nil {
			_, err = io.Copy(file, in)
			in.Close()
		}
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(bundle.Bytes())
	r := newRegistry(t, func(url string) string {
		return `{"registryType":"mcpb","identifier":"` + url + `/demo.mcpb","fileSha256":"` + hex.EncodeToString(sum[:]) + `",` +
			`"transport":{"type":"stdio"}}`
	}, map[string][]byte{"/demo.mcpb": bundle.Bytes()})
	m := connectInstalled(t, mustInstall(t, r, plan.ValueSource{GivenValues: plan.GivenValues{Args: map[string][]string{"kind": {"good"}}}}))
	checkText(t, m, "demo", "echo", map[string]any{"text": "hello"}, "hello")
	if st := statusOf(t, m, "demo"); filepath.Base(st.Config.Command) != filepath.Base(program) {
		t.Errorf("%+v", st.Config)
	}
}
