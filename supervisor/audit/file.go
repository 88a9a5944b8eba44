package audit

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/gofrs/flock"

	"github.com/mcpvisor/mcpvisor/messages"
)

const (
	// DefaultMaxSize is how large a file grows before it is put aside: some 30,000 calls.
	DefaultMaxSize = 10 << 20
	// DefaultKeep is how many files are kept besides the one that is written.
	DefaultKeep = 5
	// lockTime bounds the wait for another process that writes.
	lockTime = 2 * time.Second
	// lockEvery is how often the lock is asked for.
	lockEvery = 2 * time.Millisecond
	// sweepEvery is how often files that are too old are looked for.
	sweepEvery = time.Hour
)

// File is a writer for whole lines: it appends them to a file that it puts aside when it is large. Several of them, also of
// several processes, may write one path. Only Path must be set.
//
// The file is opened for each write, under a lock on the file Path.lock, and no process holds it in between: it may be moved,
// removed or emptied at any time. A symbolic link in its place is refused, unless it leads to a device or a pipe.
type File struct {
	// Path is the file. It and its directory are made if need be, for the user alone (0600 and 0700).
	Path string
	// MaxSize is the size in bytes at which it is put aside as Path.1, and what stands there as Path.2; DefaultMaxSize if 0.
	MaxSize int64
	// Keep is how many such files are kept; DefaultKeep if 0, none if negative. KeepFor, unless it is 0, is how long one is
	// kept after it was written last; they are looked at when one is put aside, and once an hour while something is written.
	Keep    int
	KeepFor time.Duration
	// Sync has every write wait until it is on the disk.
	Sync bool

	// lastSweep is when old files were looked for last, nil for never.
	lastSweep atomic.Pointer[time.Time]
}

// Write appends lines, each of which ends with a newline. If the file ends in the middle of a line, because the process that wrote it
// was killed or the disk was full, they begin on a new one.
func (f *File) Write(p []byte) (n int, err error) {
	defer func() {
		if err != nil {
			err = fileError("the audit file "+messages.Line(f.Path, 0)+" cannot be written", err)
		}
	}()
	if len(p) == 0 {
		return 0, nil
	}
	unlock, err := f.lockFile()
	if err != nil {
		return 0, err
	}
	defer unlock()
	flags, err := f.openFlags()
	if err != nil {
		return 0, err
	}
	if err := f.makeRoom(int64(len(p))); err != nil {
		return 0, err
	}
	if at := f.lastSweep.Load(); f.KeepFor > 0 && (at == nil || time.Since(*at) > sweepEvery) {
		now := time.Now()
		f.lastSweep.Store(&now)
		f.removeOld(f.keepCount())
	}
	out, err := os.OpenFile(f.Path, flags, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() {
		if e := out.Close(); e != nil && err == nil { // a network file system says only now that the disk is full
			n, err = 0, e
		}
	}()
	if tornEnd(out) && p[0] != '\n' {
		if _, err := out.Write([]byte{'\n'}); err != nil {
			return 0, err
		}
	}
	if n, err = out.Write(p); err == nil && f.Sync {
		err = out.Sync()
		if err != nil {
			n = 0
		}
	}
	return n, err
}

// openFlags are how the file is opened: not through a symbolic link, which an attacker may have put there so that another file is
// written, and which putting the file aside would move. A link to a device or a pipe, as /dev/stderr is, is followed.
func (f *File) openFlags() (int, error) {
	const flags = os.O_RDWR | os.O_CREATE | os.O_APPEND
	info, err := os.Lstat(f.Path)
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		return flags | noFollow, nil //nolint:nilerr // whoever opens it sees the error
	}
	if end, err := os.Stat(f.Path); err != nil || end.Mode().IsRegular() {
		return 0, errors.New("it is a symbolic link; name the file itself")
	}
	return os.O_WRONLY | os.O_APPEND, nil
}

// OpenTo says in what way the file at a path is open to others than its owner and its group's readers; empty if it is not, is
// not there, or the system has no such permissions.
func OpenTo(path string) string {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" || !info.Mode().IsRegular() {
		return ""
	}
	switch mode := info.Mode().Perm(); {
	case mode&0o022 != 0:
		return "others may write it (" + mode.String() + ")"
	case mode&0o004 != 0:
		return "everybody may read it (" + mode.String() + ")"
	}
	return ""
}

// lockFile keeps other writers away. The directory is made on the way.
func (f *File) lockFile() (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
		return nil, err
	}
	l := flock.New(f.Path+".lock", flock.SetFlag(os.O_CREATE|os.O_RDWR|noFollow), flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(context.Background(), lockTime)
	defer cancel()
	ok, err := l.TryLockContext(ctx, lockEvery)
	if err != nil && ctx.Err() == nil {
		return nil, err
	}
	if !ok {
		return nil, errors.New("another process holds its lock")
	}
	return func() { _ = l.Unlock() }, nil
}

// tornEnd reports whether a file ends in the middle of a line.
func tornEnd(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return false
	}
	var end [1]byte
	_, err = f.ReadAt(end[:], info.Size()-1)
	return err == nil && end[0] != '\n'
}

// makeRoom puts the file aside if so much more would make it too large. The lock is held.
func (f *File) makeRoom(more int64) error {
	most, keep := f.MaxSize, f.keepCount()
	if most <= 0 {
		most = DefaultMaxSize
	}
	info, err := os.Stat(f.Path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (info.Size() == 0 || info.Size()+more <= most) {
		return nil
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() { // a device or a pipe that was named on purpose
		return nil
	}
	if keep < 0 {
		return os.Remove(f.Path)
	}
	free := 1 // the first name that is free, or the last that is kept
	for free < keep {
		if _, err := os.Lstat(rotatedPath(f.Path, free)); err != nil {
			break
		}
		free++
	}
	for i := free; i >= 1; i-- {
		to, from := rotatedPath(f.Path, i), rotatedPath(f.Path, i-1)
		if err := os.Rename(from, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	f.removeOld(keep)
	return nil
}

// keepCount is how many files are kept besides the one that is written; negative for none.
func (f *File) keepCount() int {
	if f.Keep == 0 {
		return DefaultKeep
	}
	return f.Keep
}

// removeOld removes the files that Keep kept when it was larger, and those that are too old. The lock is held.
func (f *File) removeOld(keep int) {
	for i := lastRotated(f.Path); i >= 1; i-- {
		info, err := os.Stat(rotatedPath(f.Path, i))
		if err == nil && (i > keep || f.KeepFor > 0 && time.Since(info.ModTime()) > f.KeepFor) {
			_ = os.Remove(rotatedPath(f.Path, i)) // the next time then
		}
	}
}

// lastRotated is the highest number of a file that was put aside. Some may be missing in between.
func lastRotated(path string) (last int) {
	for i := 1; i-last <= 64; i++ {
		if _, err := os.Stat(rotatedPath(path, i)); err == nil {
			last = i
		}
	}
	return last
}

// rotatedPath is the name of the i-th youngest file that was put aside; 0 is the file itself.
func rotatedPath(path string, i int) string {
	if i == 0 {
		return path
	}
	return path + "." + strconv.Itoa(i)
}

// fileError keeps of a foreign error what a person can use.
func fileError(text string, err error) error {
	reason := err
	var path *fs.PathError
	if errors.As(err, &path) {
		reason = path.Err
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		reason = link.Err
	}
	return &messages.Error{Op: "audit", Class: messages.ClassConfig, Text: text + ": " + messages.Line(reason.Error(), 200), Err: err}
}
