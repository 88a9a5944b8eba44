package auth

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/files"
)

// Files is a Store of one encrypted file (0600) per key in a directory of its own (0700), whose key comes from a passphrase or a
// key file. Which of them is decided when the first secret is written, and kept in store.json.
//
// A file is replaced by a rename, after its successor has reached the disk. A file that others may read, that belongs to another
// user or that was changed is refused, not repaired. The names of the files show the keys, not the secrets; their sizes show the
// sizes.
//
// Not covered: a program that runs as the same user and finds the passphrase in this process's memory or environment; an old file
// that is put back in place of a newer one.
type Files struct {
	opts Options
	// locks exclude other writers; readers need none, because files are replaced whole.
	locks *Locks
	// openLock is held by the goroutine that opens the store, while it has an element. unlocked is set once, when the key is
	// known.
	openLock chan struct{}
	unlocked atomic.Pointer[unlockedStore]
}

// unlockedStore has what is needed to read and write once the key is known. Its sealer is nil for a store in the clear.
type unlockedStore struct{ sealer *sealer }

var _ Store = (*Files)(nil)

// maxSecret is the largest secret in bytes. Larger ones are a mistake of the caller.
const maxSecret = 1 << 20

// OpenFiles makes the store. It asks for no passphrase and writes nothing yet; an error means that nothing could ever be stored
// with these options, or that Dir is open to others.
func OpenFiles(opts Options) (*Files, error) {
	if !filepath.IsAbs(opts.Dir) {
		return nil, &transports.Error{Class: messages.ClassConfig,
			Text: "the directory for secrets is no absolute path: " + quoteLine(opts.Dir)}
	}
	f := &Files{opts: opts, locks: NewLocks(opts.Dir), openLock: make(chan struct{}, 1)}
	if _, err := os.Stat(opts.Dir); err == nil {
		if err := privateDir(opts.Dir); err != nil {
			return nil, err
		}
	}
	h, err := f.readHeader()
	if err == nil {
		_, err = f.keyKind(h)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Where implements Store.
func (f *Files) Where() string {
	if h, err := f.readHeader(); err == nil {
		if kind, err := f.keyKind(h); err == nil && kind == keyPlain {
			return "unencrypted files in " + shortPath(f.opts.Dir)
		}
	}
	return "encrypted files in " + shortPath(f.opts.Dir)
}

// Get implements Store. It asks for the passphrase only if there is a secret under the key.
func (f *Files) Get(ctx context.Context, key string) ([]byte, error) {
	path := f.secretPath(key)
	// The file is read before the key is asked for: without a secret no person need type a passphrase.
	content, err := readPrivate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	if err := checkNewer(path, content); err != nil {
		return nil, err
	}
	o, err := f.openSealer(ctx, false)
	if err != nil {
		return nil, err
	}
	secret, ok := o.sealer.open(key, content)
	if !ok {
		return nil, damagedError(path, "was changed, or belongs to another store")
	}
	return secret, nil
}

// Put implements Store. The first call makes the directory and the header. A secret that a newer program stored is not replaced.
func (f *Files) Put(ctx context.Context, key string, secret []byte) error {
	// readPrivate would refuse to read it back.
	if len(secret) > maxSecret {
		return &transports.Error{Class: messages.ClassInvalid, Text: "a secret of more than 1 MiB is not stored"}
	}
	o, err := f.openSealer(ctx, true)
	if err != nil {
		return err
	}
	unlock, err := f.lockWriters(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := f.checkReplaceable(key); err != nil {
		return err
	}
	return replaceFile(f.secretPath(key), o.sealer.seal(key, secret))
}

// checkReplaceable returns an error if a newer program stored the secret of a key. Any other content may be replaced, also what
// cannot be read.
func (f *Files) checkReplaceable(key string) error {
	content, err := readPrivate(f.secretPath(key))
	if err != nil {
		return nil //nolint:nilerr // there is none, or it is no secret of ours
	}
	return checkNewer(f.secretPath(key), content)
}

// Delete implements Store. It needs no passphrase, so that a person who has lost it can still sign out.
func (f *Files) Delete(ctx context.Context, key string) error {
	// Without the file there is nothing to lock, and the directory may not exist either.
	if _, err := os.Lstat(f.secretPath(key)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock, err := f.lockWriters(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := os.Remove(f.secretPath(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return storeError(shortPath(f.secretPath(key))+" cannot be removed", err)
	}
	_ = os.Remove(f.secretPath(key) + ".new") // a process that was killed may have left it
	files.SyncDir(f.opts.Dir)
	return nil
}

// secretPath returns the path of a key's file.
func (f *Files) secretPath(key string) string {
	return filepath.Join(f.opts.Dir, fileName(key)+".secret")
}

// headerPath returns the path of the file that says how the others are encrypted.
func (f *Files) headerPath() string { return filepath.Join(f.opts.Dir, "store.json") }

// lockWriters excludes other writers, of all processes. There is one lock for the whole store, because the header counts for all
// files.
func (f *Files) lockWriters(ctx context.Context) (unlock func(), err error) {
	return f.locks.Lock(ctx, "\x00store") // no secret has this key
}

// readHeader reads store.json; it returns nil without an error if there is none.
func (f *Files) readHeader() (*storeHeader, error) {
	b, err := readPrivate(f.headerPath())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return parseHeader(f.headerPath(), b)
}
