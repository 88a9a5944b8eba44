package auth

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/files"
)

// autoStore keeps secrets in the keyring, and in files those that the keyring does not take. One of the two may be missing: the
// keyring is there on the desktop, and not over SSH.
//
// A mark, which is a file beside the encrypted ones, says that the secret of a key is in the keyring, and only the mark decides.
// So an old token in one place is never taken for the new one in the other, and a secret in a keyring that cannot be reached is
// an error, and not a missing secret. A secret moves at the moment in which its mark is set or removed.
type autoStore struct {
	opts              Options
	ring              *Keyring // nil if there is none
	files             *Files   // nil if these options cannot have them
	ringErr, filesErr error    // why ring or files is nil
	// locks exclude other processes that write the same key.
	locks *Locks

	mu     sync.Mutex
	warned map[string]bool // by key; mu guards it
}

var _ LocatedStore = (*autoStore)(nil)

// LocatedStore is a Store that keeps secrets in more than one place.
type LocatedStore interface {
	Store
	// Location names for people the place of the secret of one key, or where Put would store it.
	Location(key string) string
}

// Where implements Store.
func (a *autoStore) Where() string {
	if a.ring != nil {
		return a.ring.Where()
	}
	return a.files.Where()
}

// Location implements LocatedStore.
func (a *autoStore) Location(key string) string {
	// The Files value here only makes paths; it needs no passphrase and opens nothing.
	_, err := os.Lstat((&Files{opts: a.opts}).secretPath(key))
	switch {
	case a.isMarked(key):
		return "keyring"
	case err == nil && a.files != nil:
		return a.files.Where()
	}
	return a.Where()
}

// markPath returns the path of a key's mark.
func (a *autoStore) markPath(key string) string {
	return filepath.Join(a.opts.Dir, fileName(key)+".keyring")
}

// isMarked reports whether the keyring has the secret of a key.
func (a *autoStore) isMarked(key string) bool {
	_, err := os.Lstat(a.markPath(key))
	return err == nil
}

// Get implements Store. It reads the place that the mark names, and never falls back to the other one.
func (a *autoStore) Get(ctx context.Context, key string) ([]byte, error) {
	if a.isMarked(key) {
		if a.ring == nil {
			return nil, &transports.Error{Class: messages.ClassUnauthorized, Err: a.ringErr,
				Text: "the secret of " + quoteLine(key) + " is in the keyring, which is out of reach: " + asError(a.ringErr).Text,
				Fix:  "run this where the keyring is, or sign in again"}
		}
		return a.ring.Get(ctx, key)
	}
	// Without a mark the secret is in its file, or there is none.
	if a.files != nil {
		return a.files.Get(ctx, key)
	}
	if _, err := os.Lstat((&Files{opts: a.opts}).secretPath(key)); err == nil {
		return nil, a.filesErr
	}
	return nil, ErrNotFound
}

// Put implements Store. It tries the keyring first, and moves the secret between the two if need be.
func (a *autoStore) Put(ctx context.Context, key string, secret []byte) error {
	if err := privateDir(a.opts.Dir); err != nil {
		return err
	}
	unlock, err := a.locks.Lock(ctx, "\x00place "+key)
	if err != nil {
		return err
	}
	defer unlock()
	// A secret that goes into the keyring takes the file's place.
	if err := (&Files{opts: a.opts}).checkReplaceable(key); err != nil {
		return err
	}
	if a.ring != nil {
		refused := a.ring.Put(ctx, key, secret)
		switch {
		case refused == nil:
			return a.moveToRing(key)
		// A caller that has given up must not cause a move into the files.
		case ctx.Err() != nil, a.files == nil:
			return refused
		}
		a.warnOnce(key, asError(refused).Text+": the secret of "+quoteLine(key)+" goes into "+a.files.Where())
	}
	if a.files == nil {
		return a.filesErr
	}
	// The new secret is in its file before the mark goes, so that a crash in between leaves the old one in force.
	if err := a.files.Put(ctx, key, secret); err != nil {
		return err
	}
	testStep("auto: in files")
	if err := os.Remove(a.markPath(key)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return storeError(shortPath(a.markPath(key))+" cannot be removed", err)
	}
	files.SyncDir(a.opts.Dir)
	return nil
}

// moveToRing sets the mark of a secret that the keyring has, and removes the file that it replaces.
func (a *autoStore) moveToRing(key string) error {
	testStep("auto: in keyring")
	if a.isMarked(key) {
		return nil
	}
	if err := replaceFile(a.markPath(key), []byte("This secret is in the keyring.\n")); err != nil {
		return err
	}
	testStep("auto: marked")
	_ = os.Remove((&Files{opts: a.opts}).secretPath(key)) // with the mark set, no program reads it any more
	return nil
}

// Delete implements Store. It removes the file, the entry in the keyring, and last the mark: if it is cut short, another Delete
// still finds the entry by the mark.
func (a *autoStore) Delete(ctx context.Context, key string) error {
	if _, err := os.Stat(a.opts.Dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	unlock, err := a.locks.Lock(ctx, "\x00place "+key)
	if err != nil {
		return err
	}
	defer unlock()
	// The file goes first, with a Files value that needs no passphrase.
	if err := (&Files{opts: a.opts, locks: a.locks}).Delete(ctx, key); err != nil {
		return err
	}
	if !a.isMarked(key) {
		return nil
	}
	if a.ring == nil {
		a.warnOnce(key, "the keyring is out of reach and keeps the secret of "+quoteLine(key)+", which is not used any more")
	} else if err := a.ring.Delete(ctx, key); err != nil {
		return err
	}
	if err := os.Remove(a.markPath(key)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return storeError(shortPath(a.markPath(key))+" cannot be removed", err)
	}
	files.SyncDir(a.opts.Dir)
	return nil
}

// warnOnce warns once about each key, because a token that is too large is written again with each refresh.
func (a *autoStore) warnOnce(key, text string) {
	a.mu.Lock()
	first := !a.warned[key]
	a.warned[key] = true
	a.mu.Unlock()
	if first {
		a.opts.emitWarning(text)
	}
}

// asError returns an error of this package as a *transports.Error.
func asError(err error) *transports.Error {
	var e *transports.Error
	if errors.As(err, &e) {
		return e
	}
	return &transports.Error{Class: messages.ClassConfig, Text: err.Error()}
}
