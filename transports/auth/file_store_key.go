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

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// keyKind returns the origin of the key: h names it, or, for a new store (h is nil), the options do. It is an error if the
// options lack what h names, because nothing could be read then.
func (f *Files) keyKind(h *storeHeader) (string, error) {
	no := func(text, fix string) (string, error) {
		return "", &transports.Error{Class: messages.ClassConfig, Text: text, Fix: fix}
	}
	// have says which kinds of keys the options can provide; no passphrase is asked for yet.
	dir := shortPath(f.opts.Dir)
	have := map[string]bool{
		keyPassphrase: f.opts.passphraseFunc() != nil, keyFile: f.opts.KeyFile != "", keyPlain: f.opts.Plain,
	}
	if h == nil {
		// A new store takes the strongest kind that the options offer.
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

// openSealer makes the sealer, once. With create set it makes a new store if there is none. Waiting ends with ctx, because a
// person may be typing the passphrase.
func (f *Files) openSealer(ctx context.Context, create bool) (*unlockedStore, error) {
	if o := f.unlocked.Load(); o != nil {
		return o, nil
	}
	select {
	case f.openLock <- struct{}{}:
	case <-ctx.Done():
		return nil, contextError(ctx, "opening the store of secrets")
	}
	defer func() { <-f.openLock }()
	// Another goroutine has opened the store while this one waited.
	if o := f.unlocked.Load(); o != nil {
		return o, nil
	}
	h, err := f.readHeader()
	if err != nil {
		return nil, err
	}
	// There is a secret's file but no header: without the salt no passphrase opens it.
	if h == nil && !create {
		return nil, damagedError(f.opts.Dir, "has lost its file store.json")
	}
	if h == nil {
		if err := privateDir(f.opts.Dir); err != nil {
			return nil, err
		}
		unlock, err := f.lockWriters(ctx)
		if err != nil {
			return nil, err
		}
		defer unlock()
		// Another process may have made the store while this one waited for the lock.
		if h, err = f.readHeader(); err != nil {
			return nil, err
		}
	}
	kind, err := f.keyKind(h)
	if err != nil {
		return nil, err
	}
	// With the writers' lock held, no other process can be making the store now.
	fresh := h == nil
	if fresh {
		h = newHeader(kind)
	}
	o := &unlockedStore{}
	if kind != keyPlain {
		if o.sealer, err = f.sealerFor(ctx, h, fresh); err != nil {
			return nil, err
		}
	}
	// The header is written last: a passphrase that could not be had leaves no store behind.
	if fresh {
		b, err := json.Marshal(h)
		if err == nil {
			err = replaceFile(f.headerPath(), append(b, '\n'))
		}
		if err != nil {
			return nil, err
		}
	}
	f.unlocked.Store(o)
	return o, nil
}

// sealerFor gets the key and checks it against the header, or completes a fresh header. A wrong key is an error here, before a
// secret could be written with it.
func (f *Files) sealerFor(ctx context.Context, h *storeHeader, fresh bool) (*sealer, error) {
	var key []byte
	// The text of the error is chosen before the key is known, because both kinds of keys end at the same check.
	mismatch := "the key in " + shortPath(f.opts.KeyFile) + " is not that of the secrets in " + shortPath(f.opts.Dir)
	if h.Key == keyPassphrase {
		mismatch = "the passphrase is not that of the secrets in " + shortPath(f.opts.Dir)
		passphrase, err := f.opts.passphraseFunc()(ctx)
		switch {
		case err != nil && ctx.Err() != nil:
			return nil, contextError(ctx, "asking for the passphrase")
		case err != nil, len(passphrase) == 0:
			return nil, &transports.Error{Class: messages.ClassUnauthorized,
				Text: "there is no passphrase for the secrets in " + shortPath(f.opts.Dir),
				Fix:  "set " + passphraseVariable}
		}
		key = h.deriveKey(passphrase)
	} else {
		var err error
		if key, err = readKeyFile(f.opts.KeyFile, fresh); err != nil {
			return nil, err
		}
	}
	s, err := newSealer(key)
	if err != nil {
		return nil, damagedError(f.opts.KeyFile, "holds no key")
	}
	// The check is a known text under the key: a wrong key shows at once, and not at the first secret.
	if fresh {
		h.Check = s.seal(checkName, []byte(checkText))
		return s, nil
	}
	if text, ok := s.open(checkName, h.Check); !ok || string(text) != checkText {
		return nil, &transports.Error{Class: messages.ClassConfig, Text: mismatch,
			Fix: "correct it, or remove that directory and sign in again"}
	}
	return s, nil
}

// readKeyFile reads the key, 32 bytes in base64. With create set it makes the file if there is none.
func readKeyFile(path string, create bool) ([]byte, error) {
	b, err := readPrivate(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && create:
		// 32 random bytes: a key file needs no derivation.
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
		return nil, damagedError(path, "holds no key")
	}
	return key, nil
}
