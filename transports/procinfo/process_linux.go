package procinfo

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Find reads /proc/PID/stat and /proc/PID/exe. The error is one of reading: fs.ErrNotExist also if the process is another user's
// and /proc is mounted with hidepid.
func Find(pid int) (Process, error) {
	dir := "/proc/" + strconv.Itoa(pid)
	b, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return Process{}, err
	}
	p, err := parseStat(b)
	if err != nil {
		return Process{}, err
	}
	// The link cannot be read for another user's process, nor for one that is hidden (HideProcess); the name of stat stays then.
	if exe, err := os.Readlink(dir + "/exe"); err == nil {
		p.Name = filepath.Base(strings.TrimSuffix(exe, " (deleted)"))
	}
	return p, nil
}

// parseStat reads /proc/PID/stat, see proc(5). The second field is the program's name in parentheses and may hold anything,
// parentheses among it, so that the fields are counted from the last parenthesis.
func parseStat(b []byte) (Process, error) {
	// The name may hold spaces and parentheses; the fields after it hold neither.
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 0 || end < open {
		return Process{}, fmt.Errorf("a process is described in an unknown form")
	}
	f := bytes.Fields(b[end+1:])
	// The start is the 22nd field of the file, and the 20th after the name.
	if len(f) < 20 {
		return Process{}, fmt.Errorf("a process is described with %d fields", len(f))
	}
	p := Process{Name: string(b[open+1 : end])}
	for _, field := range []struct {
		to   *int
		text []byte
	}{{&p.PID, bytes.TrimSpace(b[:open])}, {&p.Parent, f[1]}, {&p.Group, f[2]}, {&p.Session, f[3]}} {
		n, err := strconv.Atoi(string(field.text))
		if err != nil {
			return Process{}, err
		}
		*field.to = n
	}
	var err error
	p.Start, err = strconv.ParseUint(string(f[19]), 10, 64)
	return p, err
}
