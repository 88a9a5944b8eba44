package lists_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/mcpvisor/mcpvisor/supervisor/internal/lists"
)

func open(t *testing.T, dir string) (*lists.Files, *[]string) {
	t.Helper()
	var said []string
	return lists.Open(dir, func(text string) { said = append(said, text) }), &said
}

// TestContexts: what was saved under one context is found under that one alone, by every process.
func TestContexts(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "made [of] it*")
	f, said := open(t, dir)
	f.Save("one", []byte("ann"), []byte("ann's"))
	f.Save("one", []byte("bob"), []byte("bob's"))
	other, _ := open(t, dir)
	if a, b := other.Load("one", []byte("ann")), other.Load("one", []byte("bob")); string(a) != "ann's" || string(b) != "bob's" {
		t.Errorf("%q, %q", a, b)
	}
	if got := other.Load("one", []byte("eve")); got != nil {
		t.Errorf("another context found %q", got)
	}
	if got := other.Load("two", []byte("ann")); got != nil || other.Known("two") || !other.Known("one") {
		t.Errorf("another server found %q", got)
	}
	other.Remove("one", []byte("ann"))
	if f.Load("one", []byte("ann")) != nil || f.Load("one", []byte("bob")) == nil {
		t.Error("one was to be removed, and the other not")
	}
	if f.Forget("one"); f.Known("one") || len(*said) > 0 {
		t.Errorf("there is still something, or %q was said", *said)
	}
}

// TestRenamedFiles: a file under another's name is not taken for that one.
func TestRenamedFiles(t *testing.T) {
	dir := t.TempDir()
	f, _ := open(t, dir)
	f.Save("one", []byte("ann"), []byte("ann's"))
	files, err := filepath.Glob(filepath.Join(dir, "list-*.json"))
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	f.Save("one", []byte("bob"), []byte("bob's"))
	all, _ := filepath.Glob(filepath.Join(dir, "list-*.json"))
	for _, path := range all {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := f.Load("one", []byte("bob")); got != nil {
		t.Errorf("%q", got)
	}
}

// TestManagersMakeOneKey: those who begin at the same time agree on one key, and older versions' files go.
func TestManagersMakeOneKey(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "tools-0123456789abcdef01234567.json")
	if err := os.WriteFile(old, []byte(`{"tools":[]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 8 {
		f := lists.Open(dir, func(text string) { t.Error(text) })
		all.Go(func() { f.Save("s"+strconv.Itoa(i), nil, []byte("x")) })
	}
	all.Wait()
	f, _ := open(t, dir)
	if _, err := os.Stat(old); f.Known("s") || err == nil {
		t.Error("the file of an older version is still there")
	}
	key, err := os.ReadFile(filepath.Join(dir, "key"))
	if err != nil || len(key) != 32 {
		t.Fatal(len(key), err)
	}
	f.Save("new", nil, []byte("x"))
	if g, _ := open(t, dir); !bytes.Equal(g.Load("new", nil), []byte("x")) {
		t.Error("it is not found again")
	}
	if rest, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); len(rest) > 0 {
		t.Errorf("left over: %q", rest)
	}
}

// TestAKeyThatOthersRead: nothing is kept or found with it, which is said once.
func TestAKeyThatOthersRead(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("NOT TESTED: Windows keeps who may read a file elsewhere than in its mode")
	}
	for name, spoil := range map[string]func(path string) error{
		"mode":  func(path string) error { return os.Chmod(path, 0o644) },
		"short": func(path string) error { return os.Truncate(path, 3) },
		"link": func(path string) error {
			if err := os.Rename(path, path+".away"); err != nil {
				return err
			}
			return os.Symlink(path+".away", path)
		},
	} {
		dir := t.TempDir()
		f, _ := open(t, dir)
		f.Save("one", nil, []byte("x"))
		if err := spoil(filepath.Join(dir, "key")); err != nil {
			t.Fatal(err)
		}
		g, said := open(t, dir)
		g.Save("two", nil, []byte("x"))
		if g.Load("one", nil) != nil || g.Load("two", nil) != nil || g.Known("two") {
			t.Errorf("%s: something is kept", name)
		}
		if g.Forget("one"); len(*said) != 1 || !strings.Contains((*said)[0], "key") {
			t.Errorf("%s: said %q", name, *said)
		}
	}
}

// TestAListThatOthersRead is not believed, and contexts that never come back do not fill the disk.
func TestAListThatOthersRead(t *testing.T) {
	dir := t.TempDir()
	f, _ := open(t, dir)
	for i := range 40 {
		f.Save("one", []byte(strconv.Itoa(i)), []byte("x"))
	}
	files, _ := filepath.Glob(filepath.Join(dir, "list-*.json"))
	if len(files) != 8 {
		t.Errorf("%d files", len(files))
	}
	if runtime.GOOS == "windows" {
		return
	}
	f.Save("two", nil, []byte("x"))
	for _, path := range files {
		_ = os.Chmod(path, 0o644)
	}
	for i := range 40 {
		if f.Load("one", []byte(strconv.Itoa(i))) != nil {
			t.Error("a file is believed that others may have read")
		}
	}
	if f.Load("two", nil) == nil {
		t.Error("another's is gone")
	}
}
