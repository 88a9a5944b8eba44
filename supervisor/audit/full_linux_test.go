package audit_test

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mcpvisor/mcpvisor/supervisor/audit"
)

// appendLimited is a process that may write no file beyond 20,000 bytes, in the middle of some line, until its limit is raised.
func appendLimited(path string) int {
	signal.Ignore(syscall.SIGXFSZ)
	var before unix.Rlimit
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		return fail(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: 20_000, Max: before.Max}); err != nil {
		return fail(err)
	}
	l := audit.New(&audit.File{Path: path}, audit.Options{MaxRecords: 500})
	for i := range perProcess {
		l.Add(call(i))
		if i%100 == 0 {
			time.Sleep(5 * time.Millisecond)
		}
	}
	for deadline := time.Now().Add(30 * time.Second); l.Stats().Failing == ""; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return fail(fmt.Errorf("the limit was never met: %+v", l.Stats()))
		}
	}
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &before); err != nil {
		return fail(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		return fail(err)
	}
	return 0
}

// TestFileThatMayNotGrow: a real file that cannot be written beyond a size, and can later: one torn line, and every record is
// there or told to be missing.
func TestFileThatMayNotGrow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := reexecWith(t, "AUDIT_TEST_LIMIT", path).Run(); err != nil {
		t.Fatal(err)
	}
	all, torn := readAll(t, path)
	last := all[len(all)-1]
	if last.Lost != nil {
		last.Seq = max(last.Seq, last.Lost.To)
	}
	// Each record has a number, lost ones and those that tell of them included.
	written, lost := account(t, all, last.Seq)
	if lost == 0 || torn > 1 || written+lost < perProcess {
		t.Errorf("%d written, %d lost, %d torn", written, lost, torn)
	}
}

// TestFullFileSystem: the same on a file system of 256 KiB that is really full, and then is not.
func TestFullFileSystem(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "audit.jsonl")
	ballast := filepath.Join(dir, "ballast")
	l := audit.New(&audit.File{Path: path}, audit.Options{MaxRecords: 1000})
	add := func(n int) {
		for i := range n {
			l.Add(call(i))
			if i%100 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
	}
	add(200)
	if err := l.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	_ = os.WriteFile(ballast, make([]byte, 256<<10), 0o600) // as much of it as fits
	add(3000)
	deadline := time.Now().Add(30 * time.Second)
	for l.Stats().Failing == "" && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if st := l.Stats(); st.Failing == "" || st.Lost == 0 {
		t.Fatalf("%+v", st)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	add(100)
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	if err := l.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	all, torn := readAll(t, path)
	st := l.Stats()
	written, lost := account(t, all, st.Added)
	if written != st.Written || lost != st.Lost || torn > 1 {
		t.Errorf("%d written, %d lost, %d torn; %+v", written, lost, torn, st)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
