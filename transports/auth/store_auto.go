package auth

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// auto keeps secrets in the keyring, and in files what the keyring does not take. One of the two may be missing: the
// keyring is there on the desktop, and not over SSH.
//
// Which of them has the secret of a key is told by a mark, a file beside the encrypted ones, and by nothing else: so an
// old token in one place is never taken for the new one in the other, and a secret that is in a keyring out of reach is
// an error, not the absence of a secret. Setting or removing the mark is the moment in which a secret moves.
type auto struct {
	opts            Options
	ring            *Keyring // nil if there is none
	files           *Files   // nil if these options cannot have them
	noRing, noFiles error    // why not
	locks           *Locks

	mu     sync.Mutex
	warned map[string]bool // by key
}

var _ Placed = (*auto)(nil)

// Placed is a Store that keeps secrets in several places.
type Placed interface {
	Store
	// Place says for people where the secret of one key is, or would be.
	Place(key string) string
}

// Where implements Store.
func (a *auto) Where() string {
	if a.ring != nil {
		return a.ring.Where()
	}
	return a.files.Where()
}

// Place implements Placed.
func (a *auto) Place(key string) string {
	_, err := os.Lstat((&Files{opts: a.opts}).path(key))
	switch {
	case a.marked(key):
		return "keyring"
	case err == nil && a.files != nil:
		return a.files.Where()
	}
	return a.Where()
}

func (a *auto) mark(key string) string { return filepath.Join(a.opts.Dir, fileName(key)+".keyring") }

func (a *auto) marked(key string) bool {
	_, err := os.Lstat(a.mark(key))
	return err == nil
}

// Get implements Store.
func (a *auto) Get(ctx context.Context, key string) ([]byte, error) {
	if a.marked(key) {
		if a.ring == nil {
			return nil, &transports.Error{Class: messages.ClassUnauthorized, Err: a.noRing,
				Text: "the secret of " + quote(key) + " is in the keyring, which is out of reach: " + asError(a.noRing).Text,
				Fix:  "run this where the keyring is, or sign in again"}
		}
		return a.ring.Get(ctx, key)
	}
	if a.files != nil {
		return a.files.Get(ctx, key)
	}
	if _, err := os.Lstat((&Files{opts: a.opts}).path(key)); err == nil {
		return nil, a.noFiles
	}
	return nil, ErrNotFound
}

// Put implements Store.
func (a *auto) Put(ctx context.Context, key string, secret []byte) error {
	if err := privateDir(a.opts.Dir); err != nil {
		return err
	}
	unlock, err := a.locks.Lock(ctx, "\x00place "+key)
	if err != nil {
		return err
	}
	defer unlock()
	if a.ring != nil {
		refused := a.ring.Put(ctx, key, secret)
		switch {
		case refused == nil:
			return a.moveToRing(key)
		case ctx.Err() != nil, a.files == nil:
			return refused
		}
		a.warn(key, asError(refused).Text+": the secret of "+quote(key)+" goes into "+a.files.Where())
	}
	if a.files == nil {
		return a.noFiles
	}
	if err := a.files.Put(ctx, key, secret); err != nil {
		return err
	}
	step("auto: in files")
	if err := os.Remove(a.mark(key)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return storeError(shortPath(a.mark(key))+" cannot be removed", err)
	}
	syncDir(a.opts.Dir)
	return nil
}

// moveToRing is for a secret that the keyring has.
func (a *auto) moveToRing(key string) error {
	step("auto: in keyring")
	if a.marked(key) {
		return nil
	}
	if err := replaceFile(a.mark(key), []byte("This secret is in the keyring.\n")); err != nil {
		return err
	}
	step("auto: marked")
	_ = os.Remove((&Files{opts: a.opts}).path(key)) // no program reads it any more
	return nil
}

// Delete implements Store.
func (a *auto) Delete(ctx context.Context, key string) error {
	if _, err := os.Stat(a.opts.Dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	unlock, err := a.locks.Lock(ctx, "\x00place "+key)
	if err != nil {
		return err
	}
	defer unlock()
	if err := (&Files{opts: a.opts, locks: a.locks}).Delete(ctx, key); err != nil {
		return err
	}
	if !a.marked(key) {
		return nil
	}
	if a.ring == nil {
		a.warn(key, "the keyring is out of reach and keeps the secret of "+quote(key)+", which is not used any more")
	} else if err := a.ring.Delete(ctx, key); err != nil {
		return err
	}
	if err := os.Remove(a.mark(key)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return storeError(shortPath(a.mark(key))+" cannot be removed", err)
	}
	syncDir(a.opts.Dir)
	return nil
}

// warn warns once about each key: a token that is too large is written again with each refresh.
func (a *auto) warn(key, text string) {
	a.mu.Lock()
	first := !a.warned[key]
	a.warned[key] = true
	a.mu.Unlock()
	if first {
		a.opts.warn(text)
	}
}

// asError is an error of this package as what it is.
func asError(err error) *transports.Error {
	var e *transports.Error
	if errors.As(err, &e) {
		return e
	}
	return &transports.Error{Class: messages.ClassConfig, Text: err.Error()}
}
