package supervisor_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
)

var auditedCalls = flag.Int("calls", 6000, "how many calls the tests of a full disk make")

// disk takes written files, and can be full.
type disk struct {
	dir        string
	real       bool // the file system itself is full, and not only our writers
	full       atomic.Bool
	fill, free func(t *testing.T)
}

// pretended is a disk whose writers say that it is full, after they took a part of what they are given.
func pretended(t *testing.T) *disk {
	d := &disk{dir: t.TempDir()}
	d.fill, d.free = func(*testing.T) { d.full.Store(true) }, func(*testing.T) { d.full.Store(false) }
	return d
}

// onDisk is a file on it.
type onDisk struct {
	*audit.File
	*disk
}

func (w onDisk) Write(p []byte) (int, error) {
	if !w.full.Load() {
		return w.File.Write(p)
	}
	n, err := w.File.Write(p[:min(len(p), 100)])
	if err == nil {
		err = syscall.ENOSPC
	}
	return n, err
}

// TestAuditedCallsOnAFullDisk: two managers, each with many callers, write one record that is put aside again and again. In the
// middle the disk is full, and then is not; later the file is moved away. Every call has its result, and every number of
// both runs stands in one line or in one gap, once. The file system is a real one of bounded size where that can be had.
func TestAuditedCallsOnAFullDisk(t *testing.T) {
	const callers = 8 // of each manager
	calls := *auditedCalls
	d := smallDisk(t)
	path := filepath.Join(d.dir, "audit.jsonl")
	moved := filepath.Join(d.dir, "taken-away")
	start1 := func() *supervisor.Manager {
		m := start(t, supervisor.Config{
			Audit:        onDisk{&audit.File{Path: path, MaxSize: 64 << 10, Keep: 10_000}, d},
			AuditOptions: audit.Options{MaxRecords: calls / 8}}, map[string]*fake{"a": newFake("get")})
		settled(t, m)
		return m
	}
	both := []*supervisor.Manager{start1(), start1()}
	var mu sync.Mutex
	made := 0
	// next counts a call. The disk changes at its call, and every other call waits meanwhile.
	next := func() bool {
		mu.Lock()
		defer mu.Unlock()
		made++
		switch made {
		case calls / 3:
			d.fill(t)
		case calls * 2 / 3:
			d.free(t)
		case calls * 5 / 6:
			if runtime.GOOS != "windows" { // there a file that is open cannot be moved
				_ = os.Rename(path, moved) // it may just have been put aside
			}
		}
		return made <= calls
	}
	var longest atomic.Int64
	var wg sync.WaitGroup
	for i := range 2 * callers {
		m := both[i%2]
		wg.Go(func() {
			for next() {
				begin := time.Now()
				if _, err := m.CallTool(t.Context(), "mcp__a__get", json.RawMessage(`{"n":1}`)); err != nil {
					t.Error(err)
					return
				}
				longest.Store(max(longest.Load(), int64(time.Since(begin))))
			}
		})
	}
	wg.Wait()
	for _, m := range both {
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	runs := map[string][]audit.Record{}
	keep := func(r audit.Record) bool {
		runs[r.Run] = append(runs[r.Run], r)
		return true
	}
	torn, err := audit.ReadFiles(path, keep)
	if err != nil {
		t.Fatal(err)
	}
	if f, err := os.Open(moved); err == nil {
		n, err := audit.Read(f, keep)
		torn += n
		if f.Close() != nil || err != nil {
			t.Fatal(err)
		}
	}
	if len(runs) != 2 {
		t.Fatalf("%d runs", len(runs))
	}
	written, lost := uint64(0), uint64(0)
	for run, all := range runs {
		received := map[uint64]bool{}
		tell := func(seq uint64) {
			if received[seq] {
				t.Fatalf("run %s tells number %d twice", run, seq)
			}
			received[seq] = true
		}
		highest := uint64(0)
		for _, r := range all {
			tell(r.Seq)
			highest = max(highest, r.Seq)
			if r.Kind == audit.KindCall {
				written++
			}
			if r.Lost != nil {
				lost += r.Lost.Kinds[audit.KindCall]
				for seq := r.Lost.From; seq <= r.Lost.To; seq++ {
					tell(seq)
				}
			}
		}
		if uint64(len(received)) != highest {
			t.Errorf("run %s tells %d numbers of %d", run, len(received), highest)
		}
	}
	if written+lost != uint64(calls) || lost == 0 {
		t.Errorf("of %d calls %d are written and %d lost", calls, written, lost)
	}
	var st [2]audit.Stats
	for i, m := range both {
		if st[i] = m.AuditStats(); st[i].Waiting != 0 || st[i].Added != st[i].Written+st[i].Lost {
			t.Errorf("%+v", st[i])
		}
	}
	files, _ := filepath.Glob(path + ".*")
	t.Logf("%d calls on a %s disk: %d written, %d told to be lost, %d torn lines, %d files; the longest call took %v", calls,
		map[bool]string{true: "full", false: "pretended"}[d.real], written, lost, torn, len(files), time.Duration(longest.Load()))
}
