package audit

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// longestLine bounds a line that is read, in bytes: more than any line that File writes.
const longestLine = 4 << 20

// Read calls f with each record that r holds, in order, until f returns false. torn counts the lines that are no record,
// empty ones excepted. The last line counts also without a newline. The error is that of r.
func Read(r io.Reader, f func(Record) bool) (torn int, err error) {
	// Files may be large: one line is in memory at a time.
	in := bufio.NewReaderSize(r, chunk)
	for {
		line, _, err := readLine(in)
		if len(bytes.TrimSpace(line)) > 0 {
			if rec, ok := decodeRecord(line); !ok {
				torn++
			} else if !f(rec) {
				return torn, nil
			}
		}
		// The last line has been handed over above.
		if errors.Is(err, io.EOF) {
			return torn, nil
		}
		if err != nil {
			return torn, err
		}
	}
}

// readLine reads a line with its end, and returns how many bytes it has in the file. Of a line that is too long only a text
// comes back that is no record, so that memory stays bounded.
func readLine(in *bufio.Reader) (line []byte, size int, err error) {
	for {
		part, err := in.ReadSlice('\n')
		// Of a line that is too long only its size is kept, so that the offset stays right.
		if size += len(part); size <= longestLine {
			line = append(line, part...)
		} else {
			line = append(line[:0], "too long"...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, size, err
		}
	}
}

// ReadFiles reads the records at a path, oldest first: the rotated files, then the one that is written, as they
// are at this moment. A path without files has no records.
func ReadFiles(path string, f func(Record) bool) (torn int, err error) {
	// All files are opened first, so that a rotation while they are read loses none.
	files, err := openAll(path)
	defer closeAll(files)
	if err != nil {
		return 0, fileError("the audit file "+messages.Line(path, 0)+" cannot be read", err)
	}
	going := true
	for _, file := range files {
		n, err := Read(file, func(r Record) bool {
			going = f(r)
			return going
		})
		torn += n
		if err != nil {
			return torn, fileError("the audit file "+messages.Line(file.Name(), 0)+" cannot be read", err)
		}
		if !going {
			break
		}
	}
	return torn, nil
}

// openAll opens the files of a record, oldest first. While it holds the lock, no process rotates them; without the lock a file may
// be missed.
func openAll(path string) (files []*os.File, err error) {
	// Without a lock file no process writes, or this is a copy.
	if _, err := os.Stat(path + ".lock"); err == nil {
		if unlock, err := (&File{Path: path}).lockFile(); err == nil {
			defer unlock()
		}
	}
	// The highest number is the oldest; 0 is the file that is written.
	for i := lastRotated(path); i >= 0; i-- {
		file, err := os.Open(rotatedPath(path, i))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return files, err
		}
		files = append(files, file)
	}
	return files, nil
}

// closeAll closes files that were only read, so their errors mean nothing.
func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// followEvery is the period in which a followed record is checked for new lines.
const followEvery = 200 * time.Millisecond

// Follow reads the records at a path as ReadFiles does and continues with those that are added, until f returns false or ctx ends:
// then the error is nil. Files that are rotated meanwhile are read to their end.
func Follow(ctx context.Context, path string, f func(Record) bool) (torn int, err error) {
	w := follower{path: path, f: f}
	defer func() { closeAll(w.open) }()
	for {
		// The files are opened anew each time: the path may lead to a new file.
		files, err := openAll(path)
		if err != nil {
			closeAll(files)
			return w.torn, fileError("the audit file "+messages.Line(path, 0)+" cannot be read", err)
		}
		if going, err := w.readNew(files); err != nil || !going {
			return w.torn, err
		}
		t := time.NewTimer(followEvery)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return w.torn, nil
		}
	}
}

// follower remembers the file that it read last, and how far.
type follower struct {
	path string
	f    func(Record) bool
	open []*os.File // the last one that was read; an open file's identity cannot be given to another
	// offset is the place in that file at which the next read begins.
	offset int64
	torn   int
}

// readNew reads the new lines of files, oldest first, and keeps the last file open.
func (w *follower) readNew(files []*os.File) (going bool, err error) {
	// The first call reads all files from their beginning.
	begin, at := 0, int64(0)
	if len(w.open) > 0 {
		if begin, at, going, err = w.findResume(files); err != nil || !going || begin == len(files) {
			closeAll(files)
			return going, err
		}
	}
	going = true
	for i, file := range files[min(begin, len(files)):] {
		if going && err == nil {
			if i > 0 {
				at = 0
			}
			at, going, err = w.readLinesFrom(file, at, file.Name() == w.path)
		}
	}
	if len(files) == 0 {
		return going, err
	}
	closeAll(w.open)
	closeAll(files[:len(files)-1])
	w.open, w.offset = files[len(files)-1:], at
	return going, err
}

// findResume returns where to continue: in the file that was read last, or, if that is gone, after the rest of it, in the oldest
// file that is younger; behind them all if there is none yet.
func (w *follower) findResume(files []*os.File) (begin int, at int64, going bool, err error) {
	known, err := w.open[0].Stat()
	if err != nil {
		return 0, 0, false, err
	}
	begin = len(files)
	for i, file := range files {
		// Files are compared by identity, because a rotation changes their names.
		info, err := file.Stat()
		switch {
		case err != nil:
		// The file was emptied, so it begins anew.
		case os.SameFile(info, known) && info.Size() < w.offset:
			return i, 0, true, nil
		case os.SameFile(info, known):
			return i, w.offset, true, nil
		case begin == len(files) && (info.ModTime().After(known.ModTime()) || file.Name() == w.path):
			begin = i
		}
	}
	// The file was rotated out of reach; its last lines are still readable through the open file.
	w.offset, going, err = w.readLinesFrom(w.open[0], w.offset, true)
	return begin, 0, going, err
}

// readLinesFrom reads a file from an offset on, and returns the offset after its last whole line; of a file that no longer grows,
// the offset after all of it. A line without an end may still be completed by its writer.
func (w *follower) readLinesFrom(file *os.File, at int64, grows bool) (end int64, going bool, err error) {
	if _, err := file.Seek(at, io.SeekStart); err != nil {
		return at, false, err
	}
	in := bufio.NewReaderSize(file, chunk)
	for {
		// A line without an end is not counted while the file may grow.
		line, size, err := readLine(in)
		if err != nil && (grows || len(line) == 0) {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return at, err == nil, err
		}
		at += int64(size)
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		if rec, ok := decodeRecord(line); !ok {
			w.torn++
		} else if !w.f(rec) {
			return at, false, nil
		}
		if err != nil {
			return at, true, nil //nolint:nilerr // the end of a file that no longer grows
		}
	}
}
