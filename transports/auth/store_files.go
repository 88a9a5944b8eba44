package auth

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// Files is a Store of one encrypted file (0600) per key in a directory of its own (0700), whose key comes from a
// passphrase or a key file. How it does is decided when the first secret is written, and kept in store.json.
//
// A file is replaced by a rename, after its successor has reached the disk. A file that others may read, that belongs to
// somebody else or that was changed is refused, not repaired. File names tell the keys, not the secrets; sizes tell the
// sizes.
//
// Not covered: somebody who runs as the same user and finds the passphrase in this process's memory or environment; an
// old file put back in the place of a newer one.
type Files struct {
	opts  Options
	locks *Locks // between writers
	turn  chan struct{}
	ready atomic.Pointer[opened]
}

// opened is what is known once the key is.
type opened struct{ sealer *sealer }

var _ Store = (*Files)(nil)

// maxSecret is the largest secret in bytes.
const maxSecret = 1 << 20

// OpenFiles makes the store. Nothing is asked and nothing is written yet; an error says that nothing could ever be
// stored with these options, or that Dir is open to others.
func OpenFiles(opts Options) (*Files, error) {
	if !filepath.IsAbs(opts.Dir) {
		return nil, &transports.Error{Class: messages.ClassConfig,
			Text: "the directory for secrets is no absolute path: " + quote(opts.Dir)}
	}
	f := &Files{opts: opts, locks: NewLocks(opts.Dir), turn: make(chan struct{}, 1)}
	if _, err := os.Stat(opts.Dir); err == nil {
		if err := privateDir(opts.Dir); err != nil {
			return nil, err
		}
	}
	h, err := f.header()
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
	if h, err := f.header(); err == nil {
		if kind, err := f.keyKind(h); err == nil && kind == keyPlain {
			return "unencrypted files in " + shortPath(f.opts.Dir)
		}
	}
	return "encrypted files in " + shortPath(f.opts.Dir)
}

// Get implements Store.
func (f *Files) Get(ctx context.Context, key string) ([]byte, error) {
	path := f.path(key)
	content, err := readPrivate(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	o, err := f.open(ctx, false)
	if err != nil {
		return nil, err
	}
	secret, ok := o.sealer.open(key, content)
	if !ok {
		return nil, damaged(path, "was changed, or belongs to another store")
	}
	return secret, nil
}

// Put implements Store.
func (f *Files) Put(ctx context.Context, key string, secret []byte) error {
	if len(secret) > maxSecret {
		return &transports.Error{Class: messages.ClassInvalid, Text: "a secret of more than 1 MiB is not stored"}
	}
	o, err := f.open(ctx, true)
	if err != nil {
		return err
	}
	unlock, err := f.writing(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	return replaceFile(f.path(key), o.sealer.seal(key, secret))
}

// Delete implements Store.
func (f *Files) Delete(ctx context.Context, key string) error {
	if _, err := os.Lstat(f.path(key)); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	unlock, err := f.writing(ctx)
	if err != nil {
		return err
	}
	defer unlock()
	if err := os.Remove(f.path(key)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return storeError(shortPath(f.path(key))+" cannot be removed", err)
	}
	_ = os.Remove(f.path(key) + ".new") // of a process that was killed
	syncDir(f.opts.Dir)
	return nil
}

func (f *Files) path(key string) string { return filepath.Join(f.opts.Dir, fileName(key)+".secret") }

func (f *Files) headerPath() string { return filepath.Join(f.opts.Dir, "store.json") }

// writing excludes other writers, of all processes.
func (f *Files) writing(ctx context.Context) (unlock func(), err error) {
	return f.locks.Lock(ctx, "\x00store") // no key of a secret
}

// header reads store.json; nil if there is none.
func (f *Files) header() (*storeHeader, error) {
	b, err := readPrivate(f.headerPath())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return parseHeader(f.headerPath(), b)
}

// keyKind is where the key comes from: h says it, or, for a new store (nil), the options do.
func (f *Files) keyKind(h *storeHeader) (string, error) {
	no := func(text, fix string) (string, error) {
		return "", &transports.Error{Class: messages.ClassConfig, Text: text, Fix: fix}
	}
	dir := shortPath(f.opts.Dir)
	have := map[string]bool{
		keyPassphrase: f.opts.passphrase() != nil, keyFile: f.opts.KeyFile != "", keyPlain: f.opts.Plain,
	}
	if h == nil {
		for _, kind := range []string{keyPassphrase, keyFile, keyPlain} {
			if have[kind] {
				return kind, nil
			}
		}
		return no("secrets are not stored in the clear in "+dir,
			"set "+passphraseVariable+", name a key file, or allow unencrypted files")
	}
	if have[h.Key] {
		return h.Key, nil
	}
	switch h.Key {
	case keyPassphrase:
		return no("the secrets in "+dir+" need a passphrase", "set "+passphraseVariable)
	case keyFile:
		return no("the secrets in "+dir+" need their key file", "name it")
	}
	return no("the secrets in "+dir+" are not encrypted", "remove that directory and sign in again, or allow it")
}

// open makes the sealer, once. With create set it makes a new store if there is none.
func (f *Files) open(ctx context.Context, create bool) (*opened, error) {
	if o := f.ready.Load(); o != nil {
		return o, nil
	}
	select {
	case f.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, contextError(ctx, "opening the store of secrets")
	}
	defer func() { <-f.turn }()
	if o := f.ready.Load(); o != nil {
		return o, nil
	}
	h, err := f.header()
	if err != nil {
		return nil, err
	}
	if h == nil && !create {
		return nil, damaged(f.opts.Dir, "has lost its file store.json")
	}
	if h == nil {
		if err := privateDir(f.opts.Dir); err != nil {
			return nil, err
		}
		unlock, err := f.writing(ctx)
		if err != nil {
			return nil, err
		}
		defer unlock()
		if h, err = f.header(); err != nil { // somebody may have been faster
			return nil, err
		}
	}
	kind, err := f.keyKind(h)
	if err != nil {
		return nil, err
	}
	fresh := h == nil
	if fresh {
		h = newHeader(kind)
	}
	o := &opened{}
	if kind != keyPlain {
		if o.sealer, err = f.sealerFor(ctx, h, fresh); err != nil {
			return nil, err
		}
	}
	if fresh {
		b, err := json.Marshal(h)
		if err == nil {
			err = replaceFile(f.headerPath(), append(b, '\n'))
		}
		if err != nil {
			return nil, err
		}
	}
	f.ready.Store(o)
	return o, nil
}

// sealerFor gets the key and compares it with the header, or completes a fresh header.
func (f *Files) sealerFor(ctx context.Context, h *storeHeader, fresh bool) (*sealer, error) {
	var key []byte
	wrong := "the key in " + shortPath(f.opts.KeyFile) + " is not that of the secrets in " + shortPath(f.opts.Dir)
	if h.Key == keyPassphrase {
		wrong = "the passphrase is not that of the secrets in " + shortPath(f.opts.Dir)
		passphrase, err := f.opts.passphrase()(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, contextError(ctx, "asking for the passphrase")
		case err != nil, len(passphrase) == 0:
			return nil, &transports.Error{Class: messages.ClassUnauthorized,
				Text: "there is no passphrase for the secrets in " + shortPath(f.opts.Dir),
				Fix:  "set " + passphraseVariable}
		}
		key = h.derive(passphrase)
	} else {
		var err error
		if key, err = readKeyFile(f.opts.KeyFile, fresh); err != nil {
			return nil, err
		}
	}
	s, err := newSealer(key)
	if err != nil {
		return nil, damaged(f.opts.KeyFile, "holds no key")
	}
	if fresh {
		h.Check = s.seal(checkName, []byte(checkText))
		return s, nil
	}
	if text, ok := s.open(checkName, h.Check); !ok || string(text) != checkText {
		return nil, &transports.Error{Class: messages.ClassConfig, Text: wrong,
			Fix: "correct it, or remove that directory and sign in again"}
	}
	return s, nil
}

// readKeyFile reads the key, 32 bytes in base64. With create set it makes one if there is none.
func readKeyFile(path string, create bool) ([]byte, error) {
	b, err := readPrivate(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && create:
		key := make([]byte, chacha20poly1305.KeySize)
		_, _ = rand.Read(key) // never fails
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, storeError("the directory of the key file cannot be made", err)
		}
		return key, replaceFile(path, []byte(base64.StdEncoding.EncodeToString(key)+"\n"))
	case errors.Is(err, fs.ErrNotExist):
		return nil, &transports.Error{Class: messages.ClassConfig, Text: "the key file " + shortPath(path) + " is missing",
			Fix: "restore it, or remove the directory of the secrets and sign in again"}
	case err != nil:
		return nil, err
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(b)))
	if err != nil || len(key) != chacha20poly1305.KeySize {
		return nil, damaged(path, "holds no key")
	}
	return key, nil
}
