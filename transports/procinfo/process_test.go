package procinfo

import (
	"errors"
	"io/fs"
	"os"
	"reflect"
	"runtime"
	"syscall"
	"testing"
)

func TestThisProcessIsSeen(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" && runtime.GOOS != "windows" {
		t.Skip("this system tells nothing of processes")
	}
	p, err := Find(os.Getpid())
	if err != nil || p.PID != os.Getpid() || p.Parent != os.Getppid() || p.Start == 0 || p.Name == "" {
		t.Errorf("%+v, %v", p, err)
	}
	chain, err := Chain(os.Getpid())
	if err != nil || len(chain) == 0 || chain[0].PID != os.Getpid() {
		t.Errorf("%+v, %v", chain, err)
	}
}

// A chain ends at the first process, at one that cannot be seen, and at a number that was given to a later one.
func TestAChainHoldsParentsAlone(t *testing.T) {
	gone := errors.New("no such process")
	for name, c := range map[string]struct {
		looks []map[int]Process // what is there at each look; the last one stays
		want  []int
	}{
		"up to the first":     {[]map[int]Process{{9: {9, 5, 0, 0, 90, ""}, 5: {5, 1, 0, 0, 50, ""}, 1: {1, 0, 0, 0, 1, ""}}}, []int{9, 5, 1}},
		"a parent unseen":     {[]map[int]Process{{9: {9, 5, 0, 0, 90, ""}}}, []int{9}},
		"a number given anew": {[]map[int]Process{{9: {9, 5, 0, 0, 90, ""}, 5: {5, 1, 0, 0, 95, ""}}}, []int{9}},
		"a parent that ends": {[]map[int]Process{
			{9: {9, 5, 0, 0, 90, ""}},
			{9: {9, 1, 0, 0, 90, ""}, 1: {1, 0, 0, 0, 1, ""}},
		}, []int{9, 1}},
		"one that is its own parent": {[]map[int]Process{{9: {9, 9, 0, 0, 90, ""}}}, []int{9}},
	} {
		looks := 0
		got, err := chainWith(9, func(pid int) (Process, error) {
			there := c.looks[min(looks, len(c.looks)-1)]
			looks++
			if p, ok := there[pid]; ok {
				return p, nil
			}
			return Process{}, gone
		})
		var pids []int
		for _, p := range got {
			pids = append(pids, p.PID)
		}
		if err != nil || !reflect.DeepEqual(pids, c.want) {
			t.Errorf("%s: %v (%v), not %v", name, pids, err, c.want)
		}
	}
	if _, err := chainWith(9, func(int) (Process, error) { return Process{}, gone }); !errors.Is(err, gone) {
		t.Error(err)
	}
	// A chain whose rest cannot be read for want of a descriptor is none: what is missing may be a server of ours.
	for _, full := range []error{syscall.EMFILE, syscall.ENFILE} {
		got, err := chainWith(9, func(pid int) (Process, error) {
			if pid == 9 {
				return Process{PID: 9, Parent: 8, Start: 9}, nil
			}
			return Process{}, &fs.PathError{Op: "open", Path: "/proc/8/stat", Err: full}
		})
		if !IsExhausted(err) || got != nil {
			t.Errorf("%v: the chain %v, %v", full, got, err)
		}
	}
	deep, _ := chainWith(1000, func(pid int) (Process, error) { return Process{PID: pid, Parent: pid - 1, Start: uint64(pid)}, nil })
	if len(deep) != maxChain {
		t.Errorf("a chain of %d", len(deep))
	}
}
