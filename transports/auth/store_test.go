package auth_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

func passphrase(text string) func(context.Context) ([]byte, error) {
	return func(context.Context) ([]byte, error) { return []byte(text), nil }
}

// openStores are the ways to keep secrets; each call opens the same one again, as another process would.
func openStores(t *testing.T) map[string]func() auth.Store {
	dir := t.TempDir()
	files := func(o auth.Options) func() auth.Store {
		return func() auth.Store {
			s, err := auth.OpenFiles(o)
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	}
	memory := auth.NewMemory()
	return map[string]func() auth.Store{
		"memory":     func() auth.Store { return memory },
		"passphrase": files(auth.Options{Dir: filepath.Join(dir, "a", "b"), Passphrase: passphrase("open " + canary)}),
		"key file":   files(auth.Options{Dir: filepath.Join(dir, "c"), KeyFile: filepath.Join(dir, "keys", "key")}),
		"plain":      files(auth.Options{Dir: filepath.Join(dir, "d"), Plain: true}),
	}
}

// TestStore is the contract of every store.
func TestStore(t *testing.T) {
	for name, open := range openStores(t) {
		t.Run(name, func(t *testing.T) { checkContract(t, open) })
	}
}

func checkContract(t *testing.T, open func() auth.Store) {
	ctx, a, b := t.Context(), open(), open()
	get := func(s auth.Store, key, want string) {
		t.Helper()
		secret, err := s.Get(ctx, key)
		if want == "" && errors.Is(err, auth.ErrNotFound) {
			return
		}
		if err != nil || string(secret) != want {
			t.Errorf("Get(%q) is %q, %v, want %q", key, secret, err, want)
		}
	}
	put := func(s auth.Store, key, secret string) {
		t.Helper()
		if err := s.Put(ctx, key, []byte(secret)); err != nil {
			t.Fatalf("Put(%q): %v", key, err)
		}
	}
	const one, two = "server one https://issuer.example/", "server/one\nhttps:__issuer.example_"
	get(a, one, "")
	put(a, one, canary+"-1")
	get(a, one, canary+"-1")
	get(b, one, canary+"-1")
	get(b, two, "")
	put(b, two, "\x00 bytes \xff\n")
	put(b, one, canary+"-2")
	get(a, one, canary+"-2")
	get(a, two, "\x00 bytes \xff\n")
	put(a, two, strings.Repeat("x", 100_000))
	get(open(), two, strings.Repeat("x", 100_000))
	for range 2 {
		if err := b.Delete(ctx, one); err != nil {
			t.Errorf("Delete: %v", err)
		}
		get(a, one, "")
		get(open(), one, "")
	}
	secret, err := a.Get(ctx, two)
	if err != nil {
		t.Fatal(err)
	}
	clear(secret) // it is the caller's
	get(a, two, strings.Repeat("x", 100_000))
	if w := a.Where(); w == "" || strings.Contains(w, canary) {
		t.Errorf("Where is %q", w)
	}
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			s := open()
			for n := range 5 {
				if err := s.Put(ctx, one, fmt.Appendf(nil, "%d-%d", i, n)); err != nil {
					t.Error(err)
				}
				if secret, err := s.Get(ctx, one); err != nil || len(secret) != 3 {
					t.Errorf("%q, %v", secret, err)
				}
			}
		})
	}
	wg.Wait()
}

// TestFilesAreEncrypted: no file holds the secret or the passphrase, and none is open to others.
func TestFilesAreEncrypted(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "secrets")
	for _, o := range []auth.Options{
		{Dir: filepath.Join(dir, "1"), Passphrase: passphrase("open " + canary)},
		{Dir: filepath.Join(dir, "2"), KeyFile: filepath.Join(dir, "key")},
	} {
		s, err := auth.OpenFiles(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Put(t.Context(), "server", []byte(`{"refresh_token":"`+canary+`"}`)); err != nil {
			t.Fatal(err)
		}
	}
	files := 0
	err := filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
			t.Errorf("%s has mode %#o", path, mode)
		}
		if info.IsDir() {
			return nil
		}
		files++
		b, err := os.ReadFile(path)
		if bytes.Contains(b, []byte(canary)) {
			t.Errorf("%s holds the secret", path)
		}
		return err
	})
	if err != nil || files < 5 {
		t.Errorf("%d files, %v", files, err)
	}
}

// TestFilesRefuse: what must not be used says what it is, and no secret.
func TestFilesRefuse(t *testing.T) {
	t.Setenv("MCPVISOR_PASSPHRASE", "")
	secret := []byte(canary)
	made := func(t *testing.T, o auth.Options) auth.Options {
		o.Dir = filepath.Join(t.TempDir(), "secrets")
		s, err := auth.OpenFiles(o)
		if err == nil {
			err = s.Put(t.Context(), "server", secret)
		}
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	file := func(o auth.Options) string {
		list, _ := filepath.Glob(filepath.Join(o.Dir, "*.secret"))
		return list[0]
	}
	phrase := auth.Options{Passphrase: passphrase(canary)}
	for _, c := range []struct {
		name string
		make func(t *testing.T) auth.Options
		text string
		unix bool
	}{
		{"in the clear", func(t *testing.T) auth.Options { return auth.Options{Dir: filepath.Join(t.TempDir(), "s")} },
			"not stored in the clear", false},
		{"a relative directory", func(*testing.T) auth.Options { return auth.Options{Dir: "x", Plain: true} },
			"no absolute path", false},
		{"another passphrase", func(t *testing.T) auth.Options {
			o := made(t, phrase)
			o.Passphrase = passphrase("wrong " + canary)
			return o
		}, "not that of the secrets", false},
		{"no passphrase any more", func(t *testing.T) auth.Options {
			return auth.Options{Dir: made(t, phrase).Dir, Plain: true}
		}, "need a passphrase", false},
		{"a passphrase that nobody gives", func(t *testing.T) auth.Options {
			o := made(t, phrase)
			o.Passphrase = func(context.Context) ([]byte, error) { return nil, errors.New("no terminal for " + canary) }
			return o
		}, "there is no passphrase", false},
		{"another key file", func(t *testing.T) auth.Options {
			o := made(t, auth.Options{KeyFile: filepath.Join(t.TempDir(), "key")})
			other := made(t, auth.Options{KeyFile: filepath.Join(t.TempDir(), "key")})
			o.KeyFile = other.KeyFile
			return o
		}, "is not that of the secrets", false},
		{"a lost key file", func(t *testing.T) auth.Options {
			o := made(t, auth.Options{KeyFile: filepath.Join(t.TempDir(), "key")})
			_ = os.Remove(o.KeyFile)
			return o
		}, "is missing", false},
		{"a damaged key file", func(t *testing.T) auth.Options {
			o := made(t, auth.Options{KeyFile: filepath.Join(t.TempDir(), "key")})
			write(t, o.KeyFile, canary)
			return o
		}, "holds no key", false},
		{"plain files that were allowed once", func(t *testing.T) auth.Options {
			o := made(t, auth.Options{Plain: true})
			return auth.Options{Dir: o.Dir, Passphrase: passphrase(canary)}
		}, "not encrypted", false},
		{"an open directory", func(t *testing.T) auth.Options {
			o := made(t, phrase)
			_ = os.Chmod(o.Dir, 0o750)
			return o
		}, "open to others", true},
		{"an open file", func(t *testing.T) auth.Options {
			o := made(t, phrase)
			_ = os.Chmod(file(o), 0o640)
			return o
		}, "open to others", true},
		{"an open key file", func(t *testing.T) auth.Options {
			o := made(t, auth.Options{KeyFile: filepath.Join(t.TempDir(), "key")})
			_ = os.Chmod(o.KeyFile, 0o644)
			return o
		}, "open to others", true},
		{"a changed file", func(t *testing.T) auth.Options {
			o := made(t, phrase)
			b, _ := os.ReadFile(file(o))
			b[len(b)-1] ^= 1
			write(t, file(o), string(b))
			return o
		}, "was changed", false},
		{"a truncated file", func(t *testing.T) auth.Options {
			o := made(t, phrase)
			write(t, file(o), "mcpvisor secret 1\nshort")
			return o
		}, "was changed", false},
		{"a file in the clear put among encrypted ones", func(t *testing.T) auth.Options {
			o := made(t, phrase)
			write(t, file(o), "mcpvisor plain 1\n"+canary)
			return o
		}, "was changed", false},
		{"a lost header", func(t *testing.T) auth.Options {
			o := made(t, phrase)
			_ = os.Remove(filepath.Join(o.Dir, "store.json"))
			return o
		}, "has lost", false},
		{"a damaged header", func(t *testing.T) auth.Options {
			o := made(t, phrase)
			write(t, filepath.Join(o.Dir, "store.json"), `{"format":1,"key":"passphrase","memoryKiB":4000000000}`)
			return o
		}, "is damaged", false},
		{"a header of the future", func(t *testing.T) auth.Options {
			o := made(t, phrase)
			write(t, filepath.Join(o.Dir, "store.json"), `{"format":2}`)
			return o
		}, "written by a newer mcpvisor (format 2; this one reads up to 1)", false},
		{"a header with a member of the future", func(t *testing.T) auth.Options {
			o := made(t, phrase)
			write(t, filepath.Join(o.Dir, "store.json"), `{"format":1,"key":"passphrase","rounds":1}`)
			return o
		}, `does not know "/rounds"`, false},
		{"a file of the future", func(t *testing.T) auth.Options {
			o := made(t, phrase)
			write(t, file(o), "mcpvisor secret 2\n"+canary)
			return o
		}, "written by a newer mcpvisor (format 2; this one reads up to 1); upgrade mcpvisor", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.unix && runtime.GOOS == "windows" {
				t.Skip("modes mean nothing here")
			}
			s, err := auth.OpenFiles(c.make(t))
			if err == nil {
				_, err = s.Get(t.Context(), "server")
			}
			e := boundaryError(t, err)
			// The store asks for a passphrase that is missing; every other error is one of the configuration or of the disk.
			class := messages.ClassConfig
			if c.text == "there is no passphrase" {
				class = messages.ClassUnauthorized
			}
			if !strings.Contains(e.Error(), c.text) || e.Class != class {
				t.Errorf("%v (%s), want %q", e, e.Class, c.text)
			}
		})
	}
}

// TestSecretsAreNotExchanged: a secret stored under one key is not read under another.
func TestSecretsAreNotExchanged(t *testing.T) {
	o := auth.Options{Dir: filepath.Join(t.TempDir(), "s"), Passphrase: passphrase(canary)}
	s, err := auth.OpenFiles(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"bank", "shop"} {
		if err := s.Put(t.Context(), key, []byte("for "+key)); err != nil {
			t.Fatal(err)
		}
	}
	find := func(key string) string {
		list, _ := filepath.Glob(filepath.Join(o.Dir, key+"-*.secret"))
		return list[0]
	}
	b, _ := os.ReadFile(find("bank"))
	write(t, find("shop"), string(b))
	if secret, err := s.Get(t.Context(), "shop"); err == nil {
		t.Errorf("the shop gets %q", secret)
	} else {
		boundaryError(t, err)
	}
}

// TestPassphraseFromTheEnvironment, which is asked for once.
func TestPassphraseFromTheEnvironment(t *testing.T) {
	t.Setenv("MCPVISOR_PASSPHRASE", canary)
	o := auth.Options{Dir: filepath.Join(t.TempDir(), "s")}
	s, err := auth.OpenFiles(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Put(t.Context(), "a", []byte("secret")); err != nil {
		t.Fatal(err)
	}
	asked := 0
	o.Passphrase = func(context.Context) ([]byte, error) { asked++; return []byte(canary), nil }
	if s, err = auth.OpenFiles(o); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if secret, err := s.Get(t.Context(), "a"); err != nil || string(secret) != "secret" || asked != 1 {
			t.Errorf("%q, %v, asked %d times", secret, err, asked)
		}
	}
}
