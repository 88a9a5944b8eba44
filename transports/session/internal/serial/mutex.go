package serial

import (
	"context"
	"sync"
)

// Mutex is a mutex whose wait ends with a context, which sync.Mutex cannot do. It is not fair and not reentrant. The
// zero value is unlocked, and allocates nothing until it is locked once.
type Mutex struct {
	once sync.Once
	slot chan struct{} // capacity 1; full while the mutex is held
}

// Lock waits for the mutex and reports false if ctx ended first. After true the caller must call Unlock.
func (t *Mutex) Lock(ctx context.Context) bool {
	t.once.Do(func() { t.slot = make(chan struct{}, 1) })
	select {
	case t.slot <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// Unlock releases the mutex, which the caller holds.
func (t *Mutex) Unlock() { <-t.slot }
