package discover_test

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/supervisor/discover"
	"github.com/mcpvisor/mcpvisor/transports/files"
)

var update = flag.Bool("update", false, "write the golden files")

// written returns the store as it is on disk, with the root and the hashes, which depend on it, replaced by words.
func (w *tree) written() string {
	w.t.Helper()
	b, err := os.ReadFile(w.approvals)
	if err != nil {
		w.t.Fatal(err)
	}
	text := strings.ReplaceAll(string(b), filepath.ToSlash(w.root), "ROOT")
	return regexp.MustCompile(`v2:[0-9a-f]{64}`).ReplaceAllString(text, "v2:HASH")
}

// TestTheFormOfApprovals holds the file of version 2 as it is. If this test fails, the form has changed: raise storeVersion, so that
// older programs leave the new file alone, keep this golden file as one of the old forms that are read, and add the new one.
func TestTheFormOfApprovals(t *testing.T) {
	w := newTree(t)
	w.raw(filepath.Join(w.repo, ".mcp.json"), `{"mcpServers": {
		"a": {"command": "./a.sh", "envFile": ".env"}, "b": {"command": "b"}, "c": {"command": "c"}}}`)
	w.raw(filepath.Join(w.repo, ".env"), "ONE=1\n")
	w.raw(filepath.Join(w.repo, "a.sh"), "echo a\n")
	w.raw(w.approvals, `{"version": 1, "files": {"`+filepath.ToSlash(w.repo)+`/.mcp.json": {"c": "v1:0"}}}`)
	found := w.load(w.options(w.repo))
	if err := found.Approvals.ApproveOwn(found.Set, "a"); err != nil {
		t.Fatal(err)
	}
	found.Approvals.MarkShown(found.Set, "b")
	golden := filepath.Join("testdata", "approvals_v2.json")
	if *update {
		if err := os.WriteFile(golden, []byte(w.written()), 0o644); err != nil { //nolint:gosec // a file of the repository
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.written(); got != string(want) {
		t.Fatalf("the form has changed:\n%s\nwant\n%s", got, want)
	}
	// What is read of it is what was written: one more approval changes nothing else.
	found = w.load(w.options(w.repo))
	if !found.Approvals.Owns(found.Set, "a") || !first(found.Approvals.WasShown(found.Set, "b")) {
		t.Error("an approval of this version does not count")
	}
	if err := found.Approvals.Approve(found.Set, "c"); err != nil {
		t.Fatal(err)
	}
	for _, part := range strings.SplitAfter(string(want), "}") {
		if !strings.Contains(part, `"c"`) && !strings.Contains(w.written(), part) {
			t.Errorf("lost: %s", part)
		}
	}
}

// TestNewerApprovals: what a newer mcpvisor wrote is neither believed nor overwritten, by whatever command, and the error says so.
func TestNewerApprovals(t *testing.T) {
	for name, data := range map[string]string{
		"format":       `{"version": 3, "files": {"f": {"a": 1}}}`,
		"member":       `{"version": 2, "hosts": {}}`,
		"inner member": `{"version": 2, "files": {"f": {"a": {"hash": "v2:0", "until": 1}}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newTree(t)
			file := filepath.Join(w.repo, ".mcp.json")
			w.write(file, "a")
			w.raw(w.approvals, data)
			found := w.load(w.options(w.repo))
			equal(t, discover.AwaitingApproval(found.Set), "a")
			if len(found.Problems) != 1 || !strings.Contains(found.Problems[0].Error(), "was written by a newer mcpvisor") ||
				!strings.Contains(found.Problems[0].Error(), "upgrade mcpvisor; or move it away") {
				t.Errorf("%v", found.Problems)
			}
			var newer *files.NewerError
			if err := found.Approvals.Approve(found.Set, "a"); !errors.As(err, &newer) {
				t.Errorf("approved: %v", err)
			}
			found.Approvals.MarkShown(found.Set, "a")
			if err := found.Approvals.Forget(file, "a"); err != nil {
				t.Error(err)
			}
			if b, err := os.ReadFile(w.approvals); err != nil || string(b) != data {
				t.Errorf("overwritten with %s, %v", b, err)
			}
		})
	}
}
