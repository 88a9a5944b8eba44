package install_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/install"
	"github.com/mcpvisor/mcpvisor/supervisor/install/plan"
)

// packed is a file of an archive in a test.
type packed struct {
	name, text string
	mode       fs.FileMode
}

const manifest = `{"server":{"type":"binary","entry_point":"bin/server","mcp_config":{"command":"bin/server","args":["${__dirname}/data"]}}}`

func archive(t testing.TB, files ...packed) []byte {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate}
		if f.mode != 0 {
			h.SetMode(f.mode)
		}
		out, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := out.Write([]byte(f.text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

// store is a registry with one bundle, and the files behind it.
type store struct {
	*install.Registry
	bundle          []byte
	entry           install.Entry
	cache, unpacked string
	downloads       int
}

func stored(t *testing.T, bundle []byte, sha string, set ...func(*install.Options)) *store {
	t.Helper()
	s := &store{bundle: bundle}
	var o install.Options
	set = append(set, func(now *install.Options) { o = *now })
	r, server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.downloads++
		_, _ = w.Write(s.bundle)
	}), set...)
	s.Registry, s.cache, s.unpacked = r, o.Cache, filepath.Join(o.Bundles, sha)
	s.entry = install.Entry{Status: install.Active, Server: plan.Server{Name: "a/b", Version: "1", Packages: []plan.Package{{
		RegistryType: plan.MCPB, Identifier: server.URL + "/x.mcpb", FileSHA256: sha, Transport: plan.Transport{Type: "stdio"}}}}}
	return s
}

func (s *store) prepare(t *testing.T) (install.Installation, error) {
	t.Helper()
	return s.Prepare(t.Context(), s.entry, install.Request{})
}

// TestABundleIsDownloadedVerifiedAndUnpacked, once; what has changed since, in the cache or unpacked, is not used.
func TestABundleIsDownloadedVerifiedAndUnpacked(t *testing.T) {
	b := archive(t, packed{name: "manifest.json", text: manifest}, packed{name: "bin/", mode: fs.ModeDir | 0o755},
		packed{name: "bin/server", text: "#!/bin/sh\n"}, packed{name: "data/a", text: "a"})
	b = append(b, "MCPB_SIG_V1 a signature stands after the archive"...)
	s := stored(t, b, sum(b))
	file := filepath.Join(s.unpacked, "bin", "server")
	look := func(downloads int, when string) {
		t.Helper()
		made, err := s.prepare(t)
		if err != nil {
			t.Fatalf("%s: %v", when, err)
		}
		if made.Spec.Command != file || made.Spec.Cwd != s.unpacked || made.Spec.Args[0] != s.unpacked+"/data" {
			t.Errorf("%s: %+v", when, made.Spec)
		}
		if s.downloads != downloads {
			t.Errorf("%s: %d downloads", when, s.downloads)
		}
		text, err := os.ReadFile(file)
		if err != nil || string(text) != "#!/bin/sh\n" {
			t.Errorf("%s: %q, %v", when, text, err)
		}
		if info, err := os.Stat(file); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", when, info.Mode(), err)
		}
	}
	look(1, "at first")
	if err := os.WriteFile(filepath.Join(s.unpacked, "log.txt"), []byte("the server's own"), 0o600); err != nil {
		t.Fatal(err)
	}
	look(1, "again")
	if _, err := os.Stat(filepath.Join(s.unpacked, "log.txt")); err != nil {
		t.Errorf("what the server has written is gone: %v", err)
	}
	if err := os.WriteFile(file, []byte("evil"), 0o700); err != nil {
		t.Fatal(err)
	}
	look(1, "after the unpacked file changed")
	if err := os.WriteFile(filepath.Join(s.cache, sum(b)+".mcpb"), []byte("evil"), 0o600); err != nil {
		t.Fatal(err)
	}
	look(2, "after the cached archive changed")
	if files, _ := filepath.Glob(filepath.Join(filepath.Dir(s.unpacked), "unpacking-*")); len(files) != 0 {
		t.Errorf("left behind: %q", files)
	}
	if files, _ := filepath.Glob(filepath.Join(s.cache, "download-*")); len(files) != 0 {
		t.Errorf("left behind: %q", files)
	}
}

// TestWickedBundlesAreRefused, and leave nothing behind: outside of their directory or inside.
func TestWickedBundlesAreRefused(t *testing.T) {
	ok := packed{name: "manifest.json", text: manifest}
	server := packed{name: "bin/server", text: "x"}
	small := func(o *install.Options) { o.MaxUnpacked = 1 << 20 }
	for name, c := range map[string]struct {
		files []packed
		text  string
	}{
		"a way out":             {[]packed{ok, {name: "../evil", text: "x"}}, `the name "../evil" leads out`},
		"a way out in between":  {[]packed{ok, {name: "a/../../evil", text: "x"}}, "leads out"},
		"an absolute path":      {[]packed{ok, {name: "/etc/evil", text: "x"}}, "leads out"},
		"a path of Windows":     {[]packed{ok, {name: `..\evil`, text: "x"}}, "leads out"},
		"a drive of Windows":    {[]packed{ok, {name: `C:/evil`, text: "x"}}, "leads out"},
		"not its own name":      {[]packed{ok, {name: "a//b", text: "x"}}, "leads out"},
		"a link":                {[]packed{ok, {name: "link", text: "/etc", mode: fs.ModeSymlink | 0o777}, {name: "link/evil", text: "x"}}, `"link" is no file but a link`},
		"a device":              {[]packed{ok, {name: "dev", mode: fs.ModeDevice | 0o600}}, "is no file but a special file"},
		"a pipe":                {[]packed{ok, {name: "pipe", mode: fs.ModeNamedPipe | 0o600}}, "is no file but a special file"},
		"twice":                 {[]packed{ok, server, {name: "bin/server", text: "evil"}}, `the name "bin/server" stands twice`},
		"a file as a directory": {[]packed{ok, {name: "bin", text: "x"}, server}, `"bin" is a file and a directory`},
		"a bomb":                {[]packed{ok, server, {name: "zeros", text: strings.Repeat("\x00", 2<<20)}}, "it unpacks to more than 1 MiB"},
		"many small bombs": {[]packed{ok, server, {name: "1", text: strings.Repeat("\x00", 600<<10)}, {name: "2", text: strings.Repeat("\x00", 600<<10)}},
			"it unpacks to more than 1 MiB"},
		"no manifest":         {[]packed{server}, "has no manifest.json"},
		"a huge manifest":     {[]packed{{name: "manifest.json", text: manifest + strings.Repeat(" ", 1<<20)}}, "larger than 1 MiB"},
		"a text of terminals": {[]packed{ok, {name: "../\x1b[2J", text: "x"}}, "leads out"},
		"no server in it":     {[]packed{ok}, "which is no file of it"},
	} {
		b := archive(t, c.files...)
		s := stored(t, b, sum(b), small)
		made, err := s.prepare(t)
		var e *messages.Error
		if !errors.As(err, &e) || e.Class == "" || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %+v, %v", name, made.Spec, err)
		}
		if name == "no server in it" { // there is nothing wicked about it
			continue
		}
		files, err := os.ReadDir(filepath.Dir(s.unpacked))
		if err != nil && !errors.Is(err, fs.ErrNotExist) || len(files) != 0 {
			t.Errorf("%s: left behind: %v, %v", name, files, err)
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(s.unpacked), "..", "evil")); err == nil {
			t.Errorf("%s: it got out", name)
		}
	}
}

// TestABundleThatIsNotTheOne: another content, no checksum, no zip, too large, not there, not over https.
func TestABundleThatIsNotTheOne(t *testing.T) {
	good := archive(t, packed{name: "manifest.json", text: manifest}, packed{name: "bin/server", text: "x"})
	text := []byte("<html>")
	large := func(o *install.Options) { o.MaxDownload = 100 }
	for name, c := range map[string]struct {
		s    *store
		set  func(*store)
		text string
	}{
		"another content": {stored(t, text, sum(good)), nil, "its checksum differs; it is not used"},
		"no zip":          {stored(t, text, sum(text)), nil, "is no zip archive"},
		"half a zip":      {stored(t, good[:len(good)-30], sum(good[:len(good)-30])), nil, "is no zip archive"},
		"too large":       {stored(t, good, sum(good), large), nil, "is larger than 0 MiB"},
		"no checksum":     {stored(t, good, ""), nil, "has no checksum"},
		"not https": {stored(t, good, sum(good)), func(s *store) { s.entry.Packages[0].Identifier = "http://host.example/x.mcpb" },
			"which is no https URL"},
		"no URL":  {stored(t, good, sum(good)), func(s *store) { s.entry.Packages[0].Identifier = "file:///etc/passwd" }, "which is no https URL"},
		"nowhere": {stored(t, good, sum(good)), func(s *store) { s.entry.Packages[0].Identifier = "http://127.0.0.1:1/x" }, "cannot be had from 127.0.0.1:1"},
	} {
		if c.set != nil {
			c.set(c.s)
		}
		made, err := c.s.prepare(t)
		var e *messages.Error
		if !errors.As(err, &e) || e.Class == "" || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %+v, %v", name, made.Spec, err)
		}
	}
	// A damaged file inside of an archive whose checksum is right.
	damaged := archive(t, packed{name: "manifest.json", text: manifest}, packed{name: "bin/server", text: "0123456789"})
	if i := bytes.Index(damaged, []byte("bin/server")); i > 0 {
		damaged[i+len("bin/server")+2] ^= 0xff
	}
	if made, err := stored(t, damaged, sum(damaged)).prepare(t); err == nil || !strings.Contains(err.Error(), "bin/server is damaged") {
		t.Errorf("%+v, %v", made.Spec, err)
	}
}

// FuzzArchive: whatever bytes a bundle has, nothing is written beside its directory, and there is no panic.
func FuzzArchive(f *testing.F) {
	f.Add(archive(f, packed{name: "manifest.json", text: manifest}, packed{name: "bin/server", text: "x"}))
	f.Add(archive(f, packed{name: "manifest.json", text: manifest}, packed{name: "../x", text: "x"}))
	f.Add([]byte("PK"))
	f.Fuzz(func(t *testing.T, b []byte) {
		top := t.TempDir()
		r, err := install.New(install.Options{Base: "https://registry.example", Cache: filepath.Join(top, "c"), Bundles: filepath.Join(top, "b"),
			MaxUnpacked: 1 << 20, HTTP: deliver(func(q *http.Request) (*http.Response, error) { return response(q, 200, string(b)), nil })})
		if err != nil {
			t.Fatal(err)
		}
		e := install.Entry{Server: plan.Server{Name: "a/b", Version: "1", Packages: []plan.Package{{RegistryType: plan.MCPB,
			Identifier: "https://host.example/x", FileSHA256: sum(b), Transport: plan.Transport{Type: "stdio"}}}}}
		made, err := r.Prepare(t.Context(), e, install.Request{})
		if err == nil && made.Spec.Command == "" {
			t.Error("nothing to start, and no error")
		}
		all, _ := os.ReadDir(top)
		for _, d := range all {
			if d.Name() != "c" && d.Name() != "b" {
				t.Errorf("it wrote %s", d.Name())
			}
		}
		in, _ := os.ReadDir(filepath.Join(top, "b"))
		for _, d := range in {
			if d.Name() != sum(b) {
				t.Errorf("it wrote %s", d.Name())
			}
		}
	})
}
