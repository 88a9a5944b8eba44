package pins

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
	"github.com/mcpvisor/mcpvisor/transports/files"
)

// storeVersion is the form that is written. It rises with every change of file, pin and Definition, and of their hashes.
const storeVersion = 2

// storeFormat reads version 1 too, which had other hashes: see adoptVersionOne. A file of a newer form is never overwritten.
var storeFormat = files.Format{What: "the store of pins", Oldest: 1, Newest: storeVersion}

// file is the form of the store on disk.
type file struct {
	Version int          `json:"version"`
	Servers pinsByServer `json:"servers"`
}

// Store keeps pins in a file, or only in memory without one. Safe for concurrent use.
type Store struct {
	path string

	// mu guards all fields below. It is not held while the file is written.
	mu sync.Mutex
	// saved is the newest known content of the file; now has in addition what waits to be written.
	saved, now pinsByServer
	// waiting are the changes that are not written yet. Each is made once more on what the file holds when it is written, because
	// another process may have written meanwhile.
	waiting []func(pinsByServer)
	writing chan struct{} // closed when the running write has ended; nil if none runs
	// unread is the reason why the file cannot be read, unwritten why it cannot be written; nil if it can.
	unread, unwritten error
	// info and sum are those of the file when it was last read; failed is when a write last failed.
	info   fs.FileInfo
	sum    [sha256.Size]byte
	failed time.Time
	// compared are the lists that Compare saw last, by key. revision rises whenever Compare would answer differently;
	// reportedRevision is the last one that Reread has reported.
	compared                   map[string]comparedList
	revision, reportedRevision uint64
	// awaitingSave says that Unsaved has named tools, so that the next write must raise revision.
	awaitingSave bool
}

// comparedList is a list that was compared, with the hashes of its definitions, and the answer at a revision.
type comparedList struct {
	list     [sha256.Size]byte
	hashes   map[string]string
	full     bool
	revision uint64
	answer   Findings
}

// maxWaiting bounds the changes that wait while they cannot be written. Dropped ones are learned again from later lists.
const maxWaiting = 256

// Open reads the store at path; a missing file is an empty store, and so is an empty path, which keeps nothing. With an
// error the store can be used, has no pins, and is not written until the file can be read.
func Open(path string) (*Store, error) {
	s := &Store{path: path, saved: pinsByServer{}, now: pinsByServer{}, compared: map[string]comparedList{}}
	if path != "" {
		// The first reading happens before other goroutines have the store, so no lock is held.
		s.loadFile()
		s.pruneMissing()
	}
	return s, s.unread
}

// loadFile reads the file. It reports whether Compare would now answer differently for a server that it was asked about. The caller
// holds mu, or has not published the store yet.
func (s *Store) loadFile() (changed bool) {
	info, err := os.Stat(s.path)
	// A missing file is an empty store.
	if errors.Is(err, fs.ErrNotExist) {
		info, err = nil, nil
	}
	var text []byte
	if err == nil && info != nil {
		text, err = os.ReadFile(s.path)
	}
	var read pinsByServer
	if err == nil {
		read, err = parseStore(text)
	}
	s.info = info
	if err != nil {
		// A reason that was known already changes no answer.
		changed = s.unread == nil
		s.unread = s.unreadableError(err)
	} else {
		// Equal bytes mean that another process has only touched the file.
		// The digest of the bytes shows whether the content itself is new.
		sum := sha256.Sum256(text)
		if sum == s.sum && s.unread == nil {
			return false
		}
		changed, s.unread, s.sum = s.unread != nil, nil, sum
		changed = s.adoptPins(read) || changed
	}
	if changed {
		s.revision++
	}
	return changed
}

// adoptPins takes the content of the file over, and makes the waiting changes on it. It reports whether that differs for a server
// that was compared.
func (s *Store) adoptPins(saved pinsByServer) (changed bool) {
	was := s.now
	s.saved, s.now = saved, make(pinsByServer, len(saved))
	for key, k := range saved {
		// saved and now must not share pins, because now is changed.
		s.now[key] = k.clone()
	}
	// What this process has learned and not written yet is learned again on the new content.
	for _, change := range s.waiting {
		change(s.now)
	}
	for key := range s.compared {
		changed = changed || !s.now[key].equal(was[key])
	}
	return changed
}

// parseStore reads the text of a store. An empty file is an empty store; null entries, which a person may have written, are dropped.
func parseStore(text []byte) (pinsByServer, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return pinsByServer{}, nil
	}
	var f file
	version, err := storeFormat.Unmarshal(text, &f)
	if err != nil {
		return nil, err
	}
	// A person may have edited the file.
	for key, k := range f.Servers {
		maps.DeleteFunc(k, func(_ string, p *pin) bool { return p == nil })
		if k == nil {
			delete(f.Servers, key)
		}
	}
	if f.Servers == nil {
		f.Servers = pinsByServer{}
	}
	if version == 1 {
		f.Servers.adoptVersionOne()
	}
	return f.Servers, nil
}

// unreadableError says how to repair a file that cannot be read.
func (s *Store) unreadableError(err error) error {
	return &messages.Error{Op: "pins", Class: messages.ClassConfig, Err: err,
		Text: "the pins of tools cannot be read: " + messages.Line(err.Error(), 200), Fix: files.FixFor(err, s.path)}
}

// pruneMissing forgets the servers of files that no longer exist, once three quarters of the places are taken: projects come and go.
func (s *Store) pruneMissing() {
	// Looking for each file costs time, so it is done only when places get short.
	if len(s.now) < maxServers*3/4 {
		return
	}
	var missing []string
	for key := range s.now {
		if path := sourceFile(key); path != "" {
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
				// The file of a project was deleted or moved; its servers are seen for the first time if it returns.
				missing = append(missing, key)
			}
		}
	}
	s.applyChange(func(b pinsByServer) {
		for _, key := range missing {
			delete(b, key)
		}
	})
}

// applyChange makes a change now, and queues it for the next write. The caller holds mu.
func (s *Store) applyChange(f func(pinsByServer)) {
	// Readers see the change at once; the file follows.
	f(s.now)
	if s.path != "" {
		s.waiting = append(s.waiting, f)
	}
}

// startWriting begins to write the waiting changes in a goroutine, unless one writes already. The caller holds mu.
func (s *Store) startWriting() {
	if s.writing != nil || len(s.waiting) == 0 || s.unread != nil {
		return
	}
	// Flush waits for this channel.
	done := make(chan struct{})
	// Only one write runs at a time, so that the changes reach the file in order.
	s.writing = done
	go func() { // ends with the write
		defer close(done)
		defer func() {
			// The changes of a write that panicked stay in memory; lost ones are learned again.
			if recover() != nil {
				s.mu.Lock()
				s.writing = nil
				s.mu.Unlock()
			}
		}()
		for s.writeChanges() {
		}
	}()
}

// writeChanges makes the waiting changes on the file's present content and writes it. It reports whether more changes have come.
func (s *Store) writeChanges() bool {
	s.mu.Lock()
	// Changes that come while the file is written are written in the next round.
	changes := slices.Clone(s.waiting)
	s.mu.Unlock()
	var made pinsByServer
	var sum [sha256.Size]byte
	var unread error
	// discover.Edit holds a lock on the file from the read to the write.
	err := discover.Edit(s.path, func(old []byte) ([]byte, error) {
		var err error
		if made, err = parseStore(old); err != nil {
			unread = s.unreadableError(err)
			return nil, unread
		}
		for _, change := range changes {
			change(made)
		}
		text, err := json.Marshal(file{storeVersion, made})
		text = append(text, '\n')
		sum = sha256.Sum256(text)
		return text, err
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	// The file became unreadable: it is not overwritten, and no pin counts any more.
	case unread != nil:
		s.unread = unread
		s.revision++
	// The changes stay queued and are tried again after retryAfter.
	case err != nil:
		if s.unwritten == nil {
			s.revision++
		}
		s.unwritten, s.failed = &messages.Error{Op: "pins", Class: messages.ClassConfig, Err: err,
			Text: "the pins of tools cannot be written: " + messages.Line(err.Error(), 200), Fix: "see to it that " +
				s.path + " can be written"}, time.Now()
		s.waiting = slices.Clone(s.waiting[max(len(s.waiting)-maxWaiting, 0):])
	default:
		if s.unwritten != nil {
			s.revision++
		}
		// The file now has the changes that were taken; those that came meanwhile stay queued.
		s.waiting, s.unwritten, s.sum = slices.Clone(s.waiting[len(changes):]), nil, sum
		if s.adoptPins(made) || s.awaitingSave {
			s.revision++
		}
		s.awaitingSave = false
	}
	// More changes have come meanwhile: the same goroutine writes them.
	if err == nil && len(s.waiting) > 0 {
		return true
	}
	s.writing = nil
	return false
}

// Flush returns when everything is written, with the reason if it cannot be.
func (s *Store) Flush() error { return s.FlushWithin(context.Background()) }

// FlushWithin is like Flush, and returns ctx's error when ctx ends first; the write continues.
func (s *Store) FlushWithin(ctx context.Context) error {
	for {
		s.mu.Lock()
		s.startWriting()
		// If the write could not be started there is nothing to wait for, but a reason.
		wait := s.writing
		fault := cmp.Or(s.unread, s.unwritten)
		s.mu.Unlock()
		if wait == nil {
			return fault
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return ctx.Err()
		}
		s.mu.Lock()
		fault = cmp.Or(s.unread, s.unwritten)
		s.mu.Unlock()
		if fault != nil {
			return fault
		}
	}
}

// retryAfter is the wait after a failed write, before Reread tries it again.
const retryAfter = 5 * time.Second

// Reread takes over what another process has written, and tries failed writes again. It reports whether Compare would answer
// differently than when it last reported. The manager calls it four times a second, so an unchanged file costs one stat.
func (s *Store) Reread() bool {
	if s.path == "" {
		return false
	}
	// The stat is made without the lock: it may be slow on a network file system.
	info, err := os.Stat(s.path)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unwritten != nil && time.Since(s.failed) >= retryAfter {
		s.startWriting()
	}
	// A write of this process will take the new content over by itself.
	if s.writing == nil && !isUnchanged(s.info, info, err) {
		s.loadFile()
	}
	stale := s.revision != s.reportedRevision
	s.reportedRevision = s.revision
	return stale
}

// isUnchanged reports whether a file is the one that was read, by its identity, time and size.
func isUnchanged(was, now fs.FileInfo, err error) bool {
	if err != nil {
		// A stat that fails for another reason counts as a change, so that the reading reports it.
		return errors.Is(err, fs.ErrNotExist) && was == nil
	}
	return was != nil && os.SameFile(was, now) && was.ModTime().Equal(now.ModTime()) && was.Size() == now.Size()
}
