package session

import (
	"context"
	"sync"
)

// contextMutex is a lock that is not waited for longer than a context lives. The zero value is free, and costs nothing until it is
// taken once.
type contextMutex struct {
	once sync.Once
	slot chan struct{} // capacity 1
}

// lock reports false if ctx ended first. Otherwise the caller gives the turn back.
func (t *contextMutex) lock(ctx context.Context) bool {
	t.once.Do(func() { t.slot = make(chan struct{}, 1) })
	select {
	case t.slot <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

func (t *contextMutex) unlock() { <-t.slot }
