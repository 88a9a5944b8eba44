package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// readStats reads the figures of a process from /proc; zeros once it has ended.
func readStats(pid int) (f processStats) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	if open, err := os.ReadDir(filepath.Join(dir, "fd")); err == nil {
		f.descriptors = len(open)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "statm")); err == nil {
		if fields := strings.Fields(string(text)); len(fields) > 1 {
			pages, _ := strconv.Atoi(fields[1]) // the kernel's own number
			f.memory = pages * os.Getpagesize()
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "stat")); err == nil {
		_, rest, _ := strings.Cut(string(text), ") ")
		if fields := strings.Fields(rest); len(fields) > 12 {
			user, _ := strconv.Atoi(fields[11])
			system, _ := strconv.Atoi(fields[12])
			f.processor = time.Duration(user+system) * time.Second / 100 // in hundredths of a second, on every Linux
		}
	}
	return f
}

// remainingProcesses are the processes of the street after some time to end, and ends them.
func remainingProcesses(home string) (all []string) {
	mark := []byte("HOME=" + home + "\x00")
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		all = nil
		var pids []int
		files, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, file := range files {
			env, err := os.ReadFile(file)
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			if err != nil || pid == os.Getpid() || !bytes.Contains(append(env, 0), mark) {
				continue
			}
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(file), "cmdline"))
			all = append(all, fmt.Sprintf("%d %s", pid, bytes.ReplaceAll(line, []byte{0}, []byte{' '})))
			pids = append(pids, pid)
		}
		if len(all) == 0 || time.Now().After(until) {
			for _, pid := range pids {
				if p, err := os.FindProcess(pid); err == nil {
					_ = p.Kill() // it may have ended meanwhile
				}
			}
			return all
		}
	}
}
