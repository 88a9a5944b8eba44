package discover_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

// Edits at the same time, of files and of approvals, are all kept.
func TestEditsTakeTurns(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	file, store := filepath.Join(dir, "f"), filepath.Join(dir, "approvals.json")
	const many = 20
	set := config.Set{Specs: map[string]messages.Spec{}, Found: map[string][]config.Candidate{}}
	for i := range many {
		name := fmt.Sprint(i)
		set.Specs[name] = messages.Spec{Scope: messages.ScopeLocal, Source: file, Hold: "not yet"}
		set.Found[name] = []config.Candidate{{Spec: set.Specs[name], Binding: &config.Binding{Server: name, Path: file, Entry: []byte("{}")}}}
	}
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			err := discover.Edit(file, func(old []byte) ([]byte, error) { return fmt.Appendf(old, "%d\n", i), nil })
			a, lost := discover.LoadApprovals(store)
			if err := errors.Join(err, lost, a.Approve(set, fmt.Sprint(i))); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	text, err := os.ReadFile(file)
	if n := strings.Count(string(text), "\n"); err != nil || n != many {
		t.Errorf("%d of %d lines are there, %v", n, many, err)
	}
	a, err := discover.LoadApprovals(store)
	if waiting := discover.AwaitingApproval(a.Apply(set)); err != nil || len(waiting) > 0 {
		t.Errorf("approvals of %v are lost, %v", waiting, err)
	}
	if err := a.Forget(file, "3"); err != nil {
		t.Error(err)
	}
	if waiting := discover.AwaitingApproval(a.Apply(set)); len(waiting) != 1 || waiting[0] != "3" {
		t.Errorf("after one is forgotten %v are held", waiting)
	}
	if a, err = discover.LoadApprovals(store); err != nil || len(discover.AwaitingApproval(a.Apply(set))) != 1 {
		t.Errorf("what is forgotten is in the store: %v", err)
	}
}

// What another program writes between the reading and the replacing is not lost, and one that never stops is no endless loop.
func TestAnEditBeginsAnewWhenSomebodyElseWrites(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	file := filepath.Join(t.TempDir(), "f")
	interfere := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	calls := 0
	err := discover.Edit(file, func(old []byte) ([]byte, error) {
		if calls++; calls == 1 {
			interfere("theirs\n")
		}
		return append(old, "ours\n"...), nil
	})
	if got, _ := os.ReadFile(file); err != nil || calls != 2 || string(got) != "theirs\nours\n" {
		t.Errorf("after %d calls %q, %v", calls, got, err)
	}
	calls = 0
	err = discover.Edit(file, func(old []byte) ([]byte, error) {
		calls++
		interfere(fmt.Sprint("again ", calls))
		return []byte("ours"), nil
	})
	if got, _ := os.ReadFile(file); !errors.Is(err, discover.ErrBusy) || string(got) != fmt.Sprint("again ", calls) {
		t.Errorf("%q, %v", got, err)
	}
}

// An edit that changes nothing, or fails, leaves no file behind; a link stays one.
func TestEditThatDoesNothing(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	dir := t.TempDir()
	file, no := filepath.Join(dir, "deep", "f"), errors.New("no")
	for _, want := range []error{nil, no} {
		if err := discover.Edit(file, func([]byte) ([]byte, error) { return nil, want }); !errors.Is(err, want) {
			t.Errorf("%v, not %v", err, want)
		}
	}
	if files, _ := os.ReadDir(dir); len(files) > 0 {
		t.Errorf("%v is left", files)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "f"), link); err != nil {
		t.Skip("this system has no symbolic links for us:", err)
	}
	if err := discover.Edit(link, func([]byte) ([]byte, error) { return []byte("x"), nil }); err != nil {
		t.Error(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "f")); err != nil || string(got) != "x" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := os.Readlink(link); err != nil {
		t.Error(err)
	}
}
