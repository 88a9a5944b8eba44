package score

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// canCountProcesses says whether this system lets a process count others.
const canCountProcesses = true

// processesWith returns the processes whose command line holds a text, without this one.
func processesWith(text string) (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if line, err := os.ReadFile("/proc/" + e.Name() + "/cmdline"); err == nil && bytes.Contains(line, []byte(text)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// inputPipe returns the name of the pipe that a process has as its standard input, empty if it has ended.
func inputPipe(pid int) string {
	name, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/fd/0")
	if err != nil || !strings.HasPrefix(name, "pipe:") {
		return ""
	}
	return name
}

// processesReading returns the processes that have a pipe as their standard input.
func processesReading(pipe string) (pids []int) {
	entries, err := os.ReadDir("/proc")
	if err != nil || pipe == "" {
		return nil
	}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil && inputPipe(pid) == pipe {
			pids = append(pids, pid)
		}
	}
	return pids
}

// An error means that the process has ended.
func killProcess(pid int) { _ = unix.Kill(pid, unix.SIGKILL) }

// countZombies counts the children of a process that have ended and were not waited for.
func countZombies(parent int) (n int) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	for _, e := range entries {
		b, err := os.ReadFile("/proc/" + e.Name() + "/stat")
		if err != nil {
			continue
		}
		f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
		if len(f) > 1 && f[0] == "Z" && f[1] == strconv.Itoa(parent) {
			n++
		}
	}
	return n
}

// residentMemory returns the resident memory of a process in bytes, 0 if it has ended.
func residentMemory(pid int) int64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
	if err != nil {
		return 0
	}
	if f := strings.Fields(string(b)); len(f) > 1 {
		// The kernel writes decimal numbers.
		pages, _ := strconv.ParseInt(f[1], 10, 64)
		return pages * int64(os.Getpagesize())
	}
	return 0
}
