package audit_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor/audit"
)

// TestMain lets the test binary be a process that appends to an audit file.
func TestMain(m *testing.M) {
	if path := os.Getenv("AUDIT_TEST_APPEND"); path != "" {
		os.Exit(appendRecords(path))
	}
	if path := os.Getenv("AUDIT_TEST_ENDLESS"); path != "" {
		l := audit.New(&audit.File{Path: path}, audit.Options{})
		for i := 0; ; i++ { // until it is killed
			l.Add(call(i))
			if i%100 == 0 {
				time.Sleep(time.Millisecond)
			}
		}
	}
	if path := os.Getenv("AUDIT_TEST_LIMIT"); path != "" {
		os.Exit(appendLimited(path))
	}
	os.Exit(m.Run())
}

const perProcess = 2000

func appendRecords(path string) int {
	l := audit.New(&audit.File{Path: path, MaxSize: 64 << 10, Keep: 100}, audit.Options{})
	for i := range perProcess {
		l.Add(call(i))
		if i%50 == 0 {
			time.Sleep(time.Millisecond) // so that the processes take turns
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	if err := l.Close(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func reexecWith(t *testing.T, variable, path string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), variable+"="+path)
	cmd.Stderr = os.Stderr
	return cmd
}

func readAll(t *testing.T, path string) (all []audit.Record, torn int) {
	t.Helper()
	torn, err := audit.ReadFiles(path, func(r audit.Record) bool {
		all = append(all, r)
		return true
	})
	if err != nil {
		t.Fatal(err)
	}
	return all, torn
}

// byRun takes records of several runs apart.
func byRun(all []audit.Record) map[string][]audit.Record {
	runs := map[string][]audit.Record{}
	for _, r := range all {
		runs[r.Run] = append(runs[r.Run], r)
	}
	return runs
}

// TestProcessesShareAFile: three processes write one file, which is put aside again and again: no line is torn or lost, and
// those of each process are in order.
func TestProcessesShareAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	var running []*exec.Cmd
	for range 3 {
		cmd := reexecWith(t, "AUDIT_TEST_APPEND", path)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, cmd)
	}
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	all, torn := readAll(t, path)
	if torn != 0 || len(all) != 3*perProcess {
		t.Fatalf("%d records, %d torn lines", len(all), torn)
	}
	for _, run := range byRun(all) {
		account(t, run, perProcess)
	}
	if _, err := os.Stat(path + ".1"); err != nil {
		t.Error("the file was never put aside")
	}
}

// TestFileIsPutAside: at its size, so many are kept, and what is there is the newest.
func TestFileIsPutAside(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "below", "audit.jsonl")
	f := &audit.File{Path: path, MaxSize: 1000, Keep: 2}
	line := strings.Repeat("x", 399) + "\n"
	for i := range 20 {
		if n, err := fmt.Fprintf(f, "%02d%s", i, line[2:]); err != nil || n != 400 {
			t.Fatal(n, err)
		}
	}
	var names []string
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > 1000 || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %d bytes, %v", e.Name(), info.Size(), info.Mode())
		}
	}
	if !slices.Equal(names, []string{"audit.jsonl", "audit.jsonl.1", "audit.jsonl.2", "audit.jsonl.lock"}) {
		t.Errorf("%v", names)
	}
	var got []string
	for _, name := range []string{".2", ".1", ""} {
		data, err := os.ReadFile(path + name)
		if err != nil {
			t.Fatal(err)
		}
		for l := range bytes.Lines(data) {
			got = append(got, string(l[:2]))
		}
	}
	if strings.Join(got, " ") != "14 15 16 17 18 19" {
		t.Errorf("%v", got)
	}
}

// TestFilesThatAreTooManyOrTooOld are removed when one is put aside, and when the first line is written.
func TestFilesThatAreTooManyOrTooOld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	old := time.Now().Add(-time.Hour)
	for _, name := range []string{".1", ".2", ".3", ".4"} {
		if err := os.WriteFile(path+name, []byte("x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(path+".1", old, old); err != nil {
		t.Fatal(err)
	}
	f := &audit.File{Path: path, MaxSize: 10, Keep: 2, KeepFor: time.Minute}
	for n, want := range [][]string{{"a", "a.2", "a.lock"}, {"a", "a.1", "a.2", "a.lock"}} {
		if _, err := f.Write([]byte("123456789\n")); err != nil {
			t.Fatal(err)
		}
		var left []string
		all, _ := filepath.Glob(path + "*")
		for _, name := range all {
			left = append(left, filepath.Base(name))
		}
		if !slices.Equal(left, want) {
			t.Errorf("after write %d: %v", n+1, left)
		}
	}
}

// TestTornEndOfAFile: what a killed process left unfinished costs no other line.
func TestTornEndOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	if err := os.WriteFile(path, []byte(`{"v":1,"kind":"call","run":"a","ti`), 0o600); err != nil {
		t.Fatal(err)
	}
	l := audit.New(&audit.File{Path: path}, audit.Options{})
	l.Add(call(0))
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, torn := readAll(t, path)
	if account(t, all, 1); torn != 1 {
		t.Errorf("%d torn", torn)
	}
}

// TestFollow: what is written while a record is followed is told once and in order, files that are put aside included.
func TestFollow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	const records = 400
	l := audit.New(&audit.File{Path: path, MaxSize: 8 << 10, Keep: 20}, audit.Options{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range records {
			l.Add(call(i))
			time.Sleep(2 * time.Millisecond)
		}
	})
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	var got []audit.Record
	torn, err := audit.Follow(ctx, path, func(r audit.Record) bool {
		got = append(got, r)
		return len(got) < records
	})
	wg.Wait()
	if err != nil || torn != 0 {
		t.Errorf("%v, %d torn", err, torn)
	}
	account(t, got, records)
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path + ".1"); err != nil {
		t.Error("the file was never put aside")
	}
}

// TestFileIsTakenAway: a file that is moved, removed or emptied between two writes costs what stood in it and no more, and who
// follows the record reads each line once, the rest of a file that was moved included.
func TestFileIsTakenAway(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "audit.jsonl")
	if err := os.WriteFile(path+".1", []byte(`{"v":1,"kind":"call","run":"old","time":"2026-01-02T03:04:05Z","seq":1}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := audit.New(&audit.File{Path: path}, audit.Options{})
	add := func(n int) {
		for i := range n {
			l.Add(call(i))
		}
		if err := l.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	got := make(chan audit.Record, 1000)
	followed := make(chan error, 1)
	go func() {
		n := 0
		_, err := audit.Follow(ctx, path, func(r audit.Record) bool {
			got <- r
			n++
			return n < 41
		})
		followed <- err
	}()
	seen := func(n int) (all []audit.Record) {
		for range n {
			select {
			case r := <-got:
				all = append(all, r)
			case <-ctx.Done():
				t.Fatalf("%d of %d records were followed", len(all), n)
			}
		}
		return all
	}
	seen(1)
	add(10)
	all := seen(10)
	move := func(to string) {
		if err := os.Rename(path, filepath.Join(dir, to)); err != nil {
			t.Skipf("a file that is open cannot be moved here: %v", err)
		}
	}
	move("audit-yesterday.jsonl")
	add(10)
	all = append(all, seen(10)...)
	move("audit-today.jsonl")
	add(10)
	all = append(all, seen(10)...)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	add(10)
	all = append(all, seen(10)...)
	if err := <-followed; err != nil {
		t.Error(err)
	}
	account(t, all, 40)
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if left, _ := readAll(t, path); len(left) != 11 { // the last ten, and the old one
		t.Errorf("%d records are left", len(left))
	}
}

// TestSymbolicLinkIsRefused: no user can make File write another file, or its lock, by a link in its place.
func TestSymbolicLinkIsRefused(t *testing.T) {
	dir := t.TempDir()
	victim, path := filepath.Join(dir, "victim"), filepath.Join(dir, "audit.jsonl")
	if err := os.WriteFile(victim, []byte("precious\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{victim, filepath.Join(dir, "nothing")} {
		if err := os.Symlink(to, path); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
		if _, err := (&audit.File{Path: path}).Write([]byte("x\n")); err == nil || !strings.Contains(err.Error(), "symbolic link") {
			t.Errorf("%v", err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if data, _ := os.ReadFile(victim); string(data) != "precious\n" {
		t.Errorf("%q", data)
	}
	if _, err := os.Stat(filepath.Join(dir, "nothing")); err == nil {
		t.Error("the link was followed")
	}
}

// TestFileThatIsOpenToOthers is told; one that its group may read is not.
func TestFileThatIsOpenToOthers(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no such permissions")
	}
	path := filepath.Join(t.TempDir(), "a")
	if got := audit.OpenTo(path); got != "" {
		t.Errorf("a file that is not there: %s", got)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, want := range map[os.FileMode]string{0o600: "", 0o640: "", 0o644: "everybody may read it", 0o660: "others may write it", 0o602: "others may write it"} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if got := audit.OpenTo(path); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%v: %q", mode, got)
		}
	}
}

// TestRecordsOfANewerVersion are read as far as they are understood, and keep their line.
func TestRecordsOfANewerVersion(t *testing.T) {
	const line = `{"v":7,"time":"2031-01-02T03:04:05Z","kind":"weighed","run":"a","mass":5,"server":"s","seq":1}`
	n := 0
	torn, err := audit.Read(strings.NewReader(line+"\n"), func(r audit.Record) bool {
		n++
		if r.Version != 7 || r.Kind != "weighed" || r.Server != "s" || string(r.Line) != line {
			t.Errorf("%+v", r)
		}
		return true
	})
	if torn != 0 || n != 1 || err != nil {
		t.Errorf("%d torn, %d records, %v", torn, n, err)
	}
}

// TestKilled: of a process that is killed while it writes, what stands in the file is whole and without a gap, but for one torn
// line at most; and the next one begins on a new line.
func TestKilled(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	cmd := reexecWith(t, "AUDIT_TEST_ENDLESS", path)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(60 * time.Second); ; time.Sleep(time.Millisecond) {
		if info, err := os.Stat(path); err == nil && info.Size() > 200<<10 {
			break
		} else if time.Now().After(deadline) {
			t.Fatal("nothing is written")
		}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	l := audit.New(&audit.File{Path: path}, audit.Options{})
	l.Add(call(0))
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, torn := readAll(t, path)
	runs := byRun(all)
	if len(runs) != 2 || torn > 1 {
		t.Fatalf("%d runs, %d torn lines", len(runs), torn)
	}
	for _, run := range runs {
		account(t, run, run[len(run)-1].Seq)
	}
}

// TestFileThatCannotBeWritten: the error names the file, and what waits is written when it can be.
func TestFileThatCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "d", "audit.jsonl")
	if err := os.WriteFile(filepath.Join(dir, "d"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	f := &audit.File{Path: path}
	if _, err := f.Write([]byte("x\n")); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("%v", err)
	}
	l := audit.New(f, audit.Options{})
	l.Add(call(0))
	deadline := time.Now().Add(30 * time.Second)
	for l.Stats().Failing == "" && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if err := os.Remove(filepath.Join(dir, "d")); err != nil {
		t.Fatal(err)
	}
	if err := l.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	all, _ := readAll(t, path)
	account(t, all, 1)
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"v":1,"time":"2026-01-02T03:04:05Z","kind":"call","run":"a","seq":1}` + "\n"))
	f.Add([]byte("\n\n{\"v\":1,\"kind\":\"lost\",\"lost\":{\"records\":3}}\r\n{\"v\":"))
	f.Add([]byte(`{"v":0,"kind":"call"}` + "\n[]\nnull\n\x00\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		lines, records := 0, 0
		for line := range bytes.Lines(data) {
			if len(bytes.TrimSpace(line)) > 0 {
				lines++
			}
		}
		torn, err := audit.Read(bytes.NewReader(data), func(r audit.Record) bool {
			if r.Version < 1 || r.Kind == "" {
				t.Errorf("%+v", r)
			}
			records++
			return true
		})
		if err != nil || torn+records != lines {
			t.Errorf("%d records and %d torn of %d lines: %v", records, torn, lines, err)
		}
	})
}

// TestLongLineIsTorn: a line that is longer than any can be is left out, however long it is, and the next one is read.
func TestLongLineIsTorn(t *testing.T) {
	const good = `{"v":1,"time":"2026-01-02T03:04:05Z","kind":"call","run":"a","seq":1}` + "\n"
	data := `{"v":1,"kind":"call","error":"` + strings.Repeat("x", 9<<20) + "\"}\n" + good
	n := 0
	torn, err := audit.Read(strings.NewReader(data), func(audit.Record) bool { n++; return true })
	if torn != 1 || n != 1 || err != nil {
		t.Errorf("%d torn, %d records, %v", torn, n, err)
	}
}
