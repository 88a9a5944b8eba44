package auth

import "context"

// Locks are locks by name that exclude goroutines and processes alike.
type Locks struct {
	dir string
	in  inProcess
}

// NewLocks makes locks whose files are in dir, which all processes that share a Store must name alike. An empty dir
// excludes the goroutines of this Locks only: right for a Memory store.
func NewLocks(dir string) *Locks { return &Locks{dir: dir} }

// Lock waits for the lock of a key, or until ctx ends. unlock may be called more than once.
func (l *Locks) Lock(ctx context.Context, key string) (unlock func(), err error) {
	return l.in.lock(ctx, key)
}
