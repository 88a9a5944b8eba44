package auth_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zalando/go-keyring"

	"github.com/mcpvisor/mcpvisor/transports/auth"
)

func openAuto(t *testing.T, o auth.Options) auth.Store {
	t.Helper()
	s, err := auth.OpenAuto(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestTooLargeForTheKeyring: what the keyring refuses goes into the encrypted files, with a warning, and stays whole.
func TestTooLargeForTheKeyring(t *testing.T) {
	var warnings []string
	o := auth.Options{Dir: filepath.Join(t.TempDir(), "s"), Passphrase: passphrase(canary),
		Warn: func(text string) { warnings = append(warnings, text) }}
	put := func(text string) auth.Store {
		s := openAuto(t, o)
		for range 2 {
			if err := s.Put(t.Context(), "k", []byte(text)); err != nil {
				t.Fatal(err)
			}
		}
		return s
	}
	wantValue := func(want string) {
		t.Helper()
		if secret, err := openAuto(t, o).Get(t.Context(), "k"); err != nil || string(secret) != want {
			t.Errorf("%q, %v, want %q", secret, err, want)
		}
	}
	keyring.MockInit()
	t.Cleanup(keyring.MockInit)
	put("small " + canary)
	wantValue("small " + canary)
	keyring.MockInitWithError(keyring.ErrSetDataTooBig)
	s := put("large " + canary)
	wantValue("large " + canary)
	if len(warnings) != 1 || !strings.Contains(warnings[0], "too large") || strings.Contains(warnings[0], canary) {
		t.Errorf("the warnings are %q", warnings)
	}
	if place := s.(auth.LocatedStore).Location("k"); !strings.HasPrefix(place, "encrypted files") {
		t.Error(place)
	}
	// The same for every other refusal.
	keyring.MockInitWithError(errors.New("dbus: the prompt was dismissed"))
	put("newer " + canary)
	wantValue("newer " + canary)
	keyring.MockInit()
	put("small again")
	wantValue("small again")
}

// TestMovingIsAtomic: a crash while a secret moves between keyring and files leaves the old or the new one.
func TestMovingIsAtomic(t *testing.T) {
	t.Cleanup(func() { auth.AtStep(nil); keyring.MockInit() })
	type crash struct{}
	for _, toFiles := range []bool{true, false} {
		for at := 1; ; at++ {
			auth.AtStep(nil)
			keyring.MockInit()
			o := auth.Options{Dir: filepath.Join(t.TempDir(), "s"), Passphrase: passphrase(canary)}
			files, err := auth.OpenFiles(o)
			if err != nil {
				t.Fatal(err)
			}
			var first auth.Store = files
			if toFiles {
				first = openAuto(t, o)
			}
			if err := first.Put(t.Context(), "k", []byte("old")); err != nil {
				t.Fatal(err)
			}
			s := openAuto(t, o)
			passed, name := 0, ""
			auth.AtStep(func(step string) {
				if passed++; passed == at {
					name = step
					panic(crash{})
				}
			})
			crashed := func() (crashed bool) {
				defer func() {
					if v := recover(); v != nil {
						if _, ours := v.(crash); !ours {
							panic(v)
						}
						crashed = true
					}
				}()
				if toFiles {
					keyring.MockInitWithError(keyring.ErrSetDataTooBig)
				}
				if err := s.Put(t.Context(), "k", []byte("new")); err != nil {
					t.Errorf("at %d: %v", at, err)
				}
				return false
			}()
			auth.AtStep(nil)
			if toFiles { // the keyring of the next process still has what it had
				keyring.MockInit()
				if err := keyring.Set("test", "k", "old"); err != nil {
					t.Fatal(err)
				}
			}
			secret, err := openAuto(t, o).Get(t.Context(), "k")
			if got := string(secret); err != nil || got != "old" && got != "new" || !crashed && got != "new" {
				t.Errorf("to files %t, crash at %d (%s): %q, %v", toFiles, at, name, secret, err)
			}
			if !crashed {
				if at < 3 {
					t.Errorf("only %d steps", at-1)
				}
				break
			}
		}
	}
}

func ExampleOpen() {
	dir, err := auth.DefaultDir()
	if err != nil {
		fmt.Println(err)
		return
	}
	store, err := auth.Open(auth.Options{
		Dir:     dir,
		KeyFile: filepath.Join(filepath.Dir(dir), "secrets.key"), // for machines without a keyring and without people
		Warn:    func(text string) { fmt.Println("warning:", text) },
	})
	if err != nil {
		fmt.Println(err) // says what to do
		return
	}
	fmt.Println("tokens are kept in", store.Where())
}
