package pins

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
)

const storeVersion = 1

type file struct {
	Version int          `json:"version"`
	Servers pinsByServer `json:"servers"`
}

// Store keeps pins in a file. Safe for concurrent use.
type Store struct {
	path string

	mu sync.Mutex
	// saved is what the file holds, as far as it is known; now is that with what waits to be written.
	saved, now pinsByServer
	// waiting are the changes that are not written yet. Each is made again on what the file holds by then: another process may
	// have written meanwhile.
	waiting []func(pinsByServer)
	writing chan struct{} // closed when the write that is under way has ended; nil if there is none
	// unread is why the file cannot be read, unwritten why it cannot be written.
	unread, unwritten error
	// info and sum are those of the file when it was read last, failed is when a write failed.
	info   fs.FileInfo
	sum    [sha256.Size]byte
	failed time.Time
	// compared are what Look saw last, by key. turn rises whenever it would say something else of that, told is the last turn that
	// Reread has reported.
	compared                   map[string]comparedList
	revision, reportedRevision uint64
	// awaitingSave says that Unsaved has named tools: the next write is news.
	awaitingSave bool
}

// comparedList is a list that was looked at, with the hashes of its definitions, and the answer at a turn.
type comparedList struct {
	list     [sha256.Size]byte
	hashes   map[string]string
	full     bool
	revision uint64
	answer   Findings
}

// maxWaiting bounds the changes that wait while they cannot be written. What does not fit is learned again.
const maxWaiting = 256

// Open reads the store at path; a missing file is an empty store, and so is an empty path, which keeps nothing. With an
// error the store works, knows no tool, and is not written until the file can be read.
func Open(path string) (*Store, error) {
	s := &Store{path: path, saved: pinsByServer{}, now: pinsByServer{}, compared: map[string]comparedList{}}
	if path != "" {
		s.loadFile()
		s.pruneMissing()
	}
	return s, s.unread
}

// loadFile reads the file. It reports whether the pins of a server that was looked at are others than before. The caller holds mu,
// or nobody else has the store yet.
func (s *Store) loadFile() (changed bool) {
	info, err := os.Stat(s.path)
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
		changed = s.unread == nil
		s.unread = s.unreadableError(err)
	} else {
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

// adoptPins takes over what the file holds. It reports whether that differs for a server that was looked at.
func (s *Store) adoptPins(saved pinsByServer) (changed bool) {
	was := s.now
	s.saved, s.now = saved, make(pinsByServer, len(saved))
	for key, k := range saved {
		s.now[key] = k.clone()
	}
	for _, change := range s.waiting {
		change(s.now)
	}
	for key := range s.compared {
		changed = changed || !s.now[key].equal(was[key])
	}
	return changed
}

// parseStore reads the text of a store.
func parseStore(text []byte) (pinsByServer, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return pinsByServer{}, nil
	}
	var f file
	if err := json.Unmarshal(text, &f); err != nil {
		return nil, err
	}
	if f.Version != storeVersion {
		return nil, fmt.Errorf("it has version %d, which this program does not know", f.Version)
	}
	for key, k := range f.Servers {
		maps.DeleteFunc(k, func(_ string, p *pin) bool { return p == nil })
		if k == nil {
			delete(f.Servers, key)
		}
	}
	if f.Servers == nil {
		f.Servers = pinsByServer{}
	}
	return f.Servers, nil
}

func (s *Store) unreadableError(err error) error {
	return &messages.Error{Op: "pins", Class: messages.ClassConfig, Err: err,
		Text: "the pins of tools cannot be read: " + messages.Line(err.Error(), 200), Fix: "mend or delete " + s.path}
}

// pruneMissing forgets the servers of files that are gone, when many are remembered: projects come and go.
func (s *Store) pruneMissing() {
	if len(s.now) < maxServers*3/4 {
		return
	}
	var missing []string
	for key := range s.now {
		if path := sourceFile(key); path != "" {
			if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
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

// applyChange makes a change, and has it written with the next one. The caller holds mu.
func (s *Store) applyChange(f func(pinsByServer)) {
	f(s.now)
	if s.path != "" {
		s.waiting = append(s.waiting, f)
	}
}

// startWriting writes in the background what waits. The caller holds mu.
func (s *Store) startWriting() {
	if s.writing != nil || len(s.waiting) == 0 || s.unread != nil {
		return
	}
	done := make(chan struct{})
	s.writing = done
	go func() { // ends with the write
		defer close(done)
		defer func() {
			if recover() != nil { // what could not be written is learned again
				s.mu.Lock()
				s.writing = nil
				s.mu.Unlock()
			}
		}()
		for s.writeChanges() {
		}
	}()
}

// writeChanges writes what waits. It reports whether there is more.
func (s *Store) writeChanges() bool {
	s.mu.Lock()
	changes := slices.Clone(s.waiting)
	s.mu.Unlock()
	var made pinsByServer
	var sum [sha256.Size]byte
	var unread error
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
	case unread != nil:
		s.unread = unread
		s.revision++
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
		s.waiting, s.unwritten, s.sum = slices.Clone(s.waiting[len(changes):]), nil, sum
		if s.adoptPins(made) || s.awaitingSave {
			s.revision++
		}
		s.awaitingSave = false
	}
	if err == nil && len(s.waiting) > 0 {
		return true
	}
	s.writing = nil
	return false
}

// Flush returns when everything is written, with the reason if it cannot be.
func (s *Store) Flush() error { return s.FlushWithin(context.Background()) }

// FlushWithin is Flush until ctx ends. What is not written then is written later.
func (s *Store) FlushWithin(ctx context.Context) error {
	for {
		s.mu.Lock()
		s.startWriting()
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

// retryAfter is how long a failed write rests.
const retryAfter = 5 * time.Second

// Reread takes over what another process has written, tries again what could not be written, and reports whether Look would
// say something else now.
func (s *Store) Reread() bool {
	if s.path == "" {
		return false
	}
	info, err := os.Stat(s.path)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unwritten != nil && time.Since(s.failed) >= retryAfter {
		s.startWriting()
	}
	if s.writing == nil && !isUnchanged(s.info, info, err) {
		s.loadFile()
	}
	stale := s.revision != s.reportedRevision
	s.reportedRevision = s.revision
	return stale
}

// isUnchanged reports whether a file is the one that was read, by all that can be seen from outside.
func isUnchanged(was, now fs.FileInfo, err error) bool {
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) && was == nil
	}
	return was != nil && os.SameFile(was, now) && was.ModTime().Equal(now.ModTime()) && was.Size() == now.Size()
}
