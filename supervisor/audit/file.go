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
	"github.com/mcpvisor/mcpvisor/transports/files"
)

const (
	// DefaultMaxSize is the size in bytes at which a file is rotated: some 30,000 calls.
	DefaultMaxSize = 10 << 20
	// DefaultKeep is the number of rotated files that are kept.
	DefaultKeep = 5
	// lockTime bounds the wait for the lock that another process holds.
	lockTime = 2 * time.Second
	// lockEvery is the wait between two tries of the lock.
	lockEvery = 2 * time.Millisecond
	// sweepEvery is the least time between two searches for files that are too old.
	sweepEvery = time.Hour
)

// File is a writer for whole lines: it appends them to a file that it rotates when it is large. Several of them, also of
// several processes, may write one path. Only Path must be set.
//
// The file is opened for each write, under a lock on the file Path.lock, and no process holds it in between: it may be moved,
// removed or emptied at any time. A symbolic link in its place is refused, unless it leads to a device or a pipe.
// removed or emptied at any time. A symbolic link in its place is refused, unless it leads to a device or a pipe.
type File struct {
	// Path is the file. It and its directory are made if they are missing, for the user alone (0600 and 0700).
	Path string
	// MaxSize is the size in bytes at which it is renamed to Path.1, and the file of that name to Path.2; DefaultMaxSize if 0.
	MaxSize int64
	// Keep is the number of such files that are kept; DefaultKeep if 0, none if negative. KeepFor, unless it is 0, bounds the
	// time that one is kept after its last write; old ones are removed when one is rotated, and once an hour while lines are
	// written.
	Keep    int
	KeepFor time.Duration
	// Sync makes every write wait until it is on the disk.
	Sync bool

	// lastSweep is the time of the last search for old files, nil for never.
	lastSweep atomic.Pointer[time.Time]
}

// Write appends lines, each of which ends with a newline. If the file ends in the middle of a line, because the process that wrote it
// was killed or the disk was full, the lines begin on a new one.
func (f *File) Write(p []byte) (n int, err error) {
	defer func() {
		if err != nil {
			err = fileError("the audit file "+messages.Line(f.Path, 0)+" cannot be written", err)
		}
	}()
	if len(p) == 0 {
		return 0, nil
	}
	// The lock is held for one write: rotation, repair of a torn end, and the lines themselves.
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
	// The sweep runs here because only a process that writes has the lock.
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
		// A network file system may report a full disk only now.
		if e := out.Close(); e != nil && err == nil {
			n, err = 0, e
		}
	}()
	// A line that begins with a newline was prepared by the Log for a torn end.
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

// openFlags returns how the file is opened. A symbolic link is refused: an attacker may have put it there so that another file is
// written, and a rotation would move the link. A link to a device or a pipe, as /dev/stderr is, is followed.
func (f *File) openFlags() (int, error) {
	const flags = os.O_RDWR | os.O_CREATE | os.O_APPEND
	info, err := os.Lstat(f.Path)
	// An error of Lstat comes again when the file is opened, and is reported there.
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		return flags | files.NoFollow, nil //nolint:nilerr // it comes again when the file is opened
	}
	// Following a link to a regular file would let its author choose which file is written.
	if end, err := os.Stat(f.Path); err != nil || end.Mode().IsRegular() {
		return 0, errors.New("it is a symbolic link; name the file itself")
	}
	return os.O_WRONLY | os.O_APPEND, nil
}

// OpenTo says in which way the file at a path is accessible beyond its owner and its group's readers; empty if it is not, does
// not exist, or the system has no such permissions.
func OpenTo(path string) string {
	info, err := os.Stat(path)
	if err != nil || runtime.GOOS == "windows" || !info.Mode().IsRegular() {
		return ""
	}
	switch mode := info.Mode().Perm(); {
	// A file that others can write is no evidence.
	case mode&0o022 != 0:
		return "others may write it (" + mode.String() + ")"
	case mode&0o004 != 0:
		return "everybody may read it (" + mode.String() + ")"
	}
	return ""
}

// lockFile takes the lock that all writers of the path share. It makes the directory, which the lock file needs.
func (f *File) lockFile() (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(f.Path), 0o700); err != nil {
		return nil, err
	}
	l := flock.New(f.Path+".lock", flock.SetFlag(os.O_CREATE|os.O_RDWR|files.NoFollow), flock.SetPermissions(0o600))
	ctx, cancel := context.WithTimeout(context.Background(), lockTime)
	defer cancel()
	// The lock is tried every 2 ms: the system offers no wait with a bound.
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
	// One byte decides: every whole line ends with a newline.
	var end [1]byte
	_, err = f.ReadAt(end[:], info.Size()-1)
	return err == nil && end[0] != '\n'
}

// makeRoom rotates the file if so many more bytes would make it too large. The caller holds the lock.
func (f *File) makeRoom(more int64) error {
	// A file that is empty is never rotated, even if the lines are larger than MaxSize.
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
	// The user named a device or a pipe on purpose: it cannot be rotated.
	if !info.Mode().IsRegular() {
		return nil
	}
	if keep < 0 {
		// Without rotated files the old lines are given up.
		return os.Remove(f.Path)
	}
	// free becomes the first free number, or the last that is kept.
	free := 1
	// Renaming stops at the first free number, so that a gap is filled and fewer files are touched.
	for free < keep {
		if _, err := os.Lstat(rotatedPath(f.Path, free)); err != nil {
			break
		}
		free++
	}
	// The files are renamed from the oldest on, so that an interruption loses none.
	for i := free; i >= 1; i-- {
		to, from := rotatedPath(f.Path, i), rotatedPath(f.Path, i-1)
		if err := os.Rename(from, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	f.removeOld(keep)
	return nil
}

// keepCount returns how many rotated files are kept; negative for none.
func (f *File) keepCount() int {
	if f.Keep == 0 {
		return DefaultKeep
	}
	return f.Keep
}

// removeOld removes the files beyond Keep, which may have been larger before, and those that are too old. The caller holds the lock.
func (f *File) removeOld(keep int) {
	// All numbers are visited, because Keep may have been larger in an earlier run.
	for i := lastRotated(f.Path); i >= 1; i-- {
		info, err := os.Stat(rotatedPath(f.Path, i))
		if err == nil && (i > keep || f.KeepFor > 0 && time.Since(info.ModTime()) > f.KeepFor) {
			_ = os.Remove(rotatedPath(f.Path, i)) // the next sweep tries again
		}
	}
}

// lastRotated returns the highest number of a rotated file. Numbers may be missing in between, up to 64 of them.
func lastRotated(path string) (last int) {
	// The user may have removed some of them.
	for i := 1; i-last <= 64; i++ {
		if _, err := os.Stat(rotatedPath(path, i)); err == nil {
			last = i
		}
	}
	return last
}

// rotatedPath returns the name of the i-th youngest rotated file; 0 is the file itself.
func rotatedPath(path string, i int) string {
	if i == 0 {
		return path
	}
	return path + "." + strconv.Itoa(i)
}

// fileError translates an error of the file system, without the path that it repeats.
func fileError(text string, err error) error {
	// The path is in the text already, neutralised.
	reason := messages.Line(files.PlainCause(err).Error(), 200)
	return &messages.Error{Op: "audit", Class: messages.ClassConfig, Text: text + ": " + reason, Err: err}
}
