package auth

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"
)

// Locks are locks by name that exclude goroutines and processes alike. The kernel releases those of a process that
// dies. They are advice: they bind who asks for them.
type Locks struct {
	dir   string
	local goroutineLocks
}

// NewLocks makes locks whose files are in dir, which all processes that share a Store must name alike; it is made, for
// the user alone, if need be. The files stay: to remove one while a process waits for it would let two in. An
// empty dir excludes the goroutines of this Locks only: right for a Memory store.
//
// On a network file system the locks are as good as that file system's.
func NewLocks(dir string) *Locks { return &Locks{dir: dir} }

// Lock waits for the lock of a key, or until ctx ends. unlock may be called more than once, from any goroutine. A goroutine that
// waits gets its turn in the order of this process; among processes the first that asks gets it.
func (l *Locks) Lock(ctx context.Context, key string) (unlock func(), err error) {
	leave, err := l.local.lockKey(ctx, key)
	if err != nil {
		return nil, contextError(ctx, "waiting for the lock of "+quoteLine(key))
	}
	if l.dir == "" {
		return leave, nil
	}
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
		case ok:
			return sync.OnceFunc(func() {
				_ = file.Unlock()
				leave()
			}), nil
		}
		if !sleepContext(ctx, wait) {
			leave()
			return nil, contextError(ctx, "waiting for another process, which holds the lock of "+quoteLine(key))
		}
	}
}

// A lock of another process is asked for again after lockMinDelay, then after twice that, up to lockMaxDelay: a refresh takes
// a few hundred milliseconds.
const (
	lockMinDelay = 2 * time.Millisecond
	lockMaxDelay = 50 * time.Millisecond
)
