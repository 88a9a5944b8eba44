package auth

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/mcpvisor/mcpvisor/transports/internal/pause"
)

// Locks are locks by name that exclude goroutines and processes alike. The kernel releases those of a process that dies. They are
// advisory: they bind only programs that take them.
type Locks struct {
	// dir is empty for locks among goroutines alone. local is taken before the file, so that one goroutine at a time polls it.
	dir   string
	local goroutineLocks
}

// NewLocks makes locks whose files are in dir, which all processes that share a Store must name alike; it is made, for the user
// alone, if need be. The files stay after use: removing one while a process waits for it would let two processes in. With an
// empty dir the locks exclude the goroutines of this Locks only, which suits a Memory store.
//
// On a network file system the locks are as good as that file system's.
func NewLocks(dir string) *Locks { return &Locks{dir: dir} }

// Lock waits for the lock of a key, or until ctx ends. unlock may be called more than once, from any goroutine. Waiting
// goroutines of this process get the lock in turn; among processes the first one that tries after a release gets it.
func (l *Locks) Lock(ctx context.Context, key string) (unlock func(), err error) {
	// Goroutines first: they get their turn in order, and only one of them polls the file.
	leave, err := l.local.lockKey(ctx, key)
	if err != nil {
		return nil, contextError(ctx, "waiting for the lock of "+quoteLine(key))
	}
	if l.dir == "" {
		return leave, nil
	}
	// In a directory that others can write to they could hold the locks.
	if err := privateDir(l.dir); err != nil {
		leave()
		return nil, err
	}
	file := flock.New(filepath.Join(l.dir, fileName(key)+".lock"),
		flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	for wait := lockMinDelay; ; wait = min(wait*2, lockMaxDelay) {
		switch ok, err := file.TryLock(); {
		case err != nil:
			leave()
			return nil, storeError("the lock "+shortPath(file.Path())+" cannot be taken", err)
		// The file is released before the next goroutine of this process may try for it.
		case ok:
			return sync.OnceFunc(func() {
				_ = file.Unlock()
				leave()
			}), nil
		}
		if !pause.For(ctx, wait) {
			leave()
			return nil, contextError(ctx, "waiting for another process, which holds the lock of "+quoteLine(key))
		}
	}
}

// The pauses between two attempts to get a lock that another process holds: lockMinDelay, then doubled up to lockMaxDelay. A
// refresh takes a few hundred milliseconds, and no system call waits for a file lock and a context at once.
const (
	lockMinDelay = 2 * time.Millisecond
	lockMaxDelay = 50 * time.Millisecond
)
