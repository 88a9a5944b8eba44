package auth

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/zalando/go-keyring"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// Keyring is a Store in the operating system's keyring: the Secret Service (GNOME Keyring, KWallet, KeePassXC) over
// D-Bus, macOS's Keychain, Windows's Credential Manager.
//
// A keyring may ask the person for a password, and may hang. So every call is bounded, by its context and by a minute; calls go
// one after another, and while one hangs, later ones fail at their bound. So at most one goroutine of a Keyring ever hangs.
//
// Not covered: other programs of the same user, which most keyrings let read everything. On Windows a secret has at most 2.5 KiB,
// on macOS 3 KiB: see [ErrTooLarge].
type Keyring struct {
	service  string
	callLock chan struct{} // held by the goroutine of a call, also if the caller has stopped waiting
}

var _ Store = (*Keyring)(nil)

// ErrTooLarge means that the keyring does not take a secret of this size. A store of kind auto puts it into a file then.
var ErrTooLarge = errors.New("the secret is too large for the keyring")

const (
	// probeTime bounds the look for a keyring at the start.
	probeTime = 3 * time.Second
	// keyringTime bounds every other call. A person may have to type a password.
	keyringTime = time.Minute
)

// OpenKeyring opens the keyring, if there is one that answers within 3 s. It reads no secret and makes no person type a password.
// An error means that there is none, and says why.
func OpenKeyring(ctx context.Context, opts Options) (*Keyring, error) {
	k := &Keyring{service: opts.Service, callLock: make(chan struct{}, 1)}
	if k.service == "" {
		k.service = "mcpvisor"
	}
	// callBounded bounds the goroutine's caller, and the probe itself uses the context.
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	_, err := k.callBounded(ctx, "looked for", func() (string, error) { return "", probeKeyring(ctx) })
	if err != nil {
		return nil, err
	}
	return k, nil
}

// Where implements Store.
func (k *Keyring) Where() string { return "keyring" }

// textPrefix marks a secret that is stored in base64, because keyrings are made for text.
const textPrefix = "base64:"

// Get implements Store.
func (k *Keyring) Get(ctx context.Context, key string) ([]byte, error) {
	text, err := k.callBounded(ctx, "read", func() (string, error) { return keyring.Get(k.service, key) })
	if err != nil {
		return nil, err
	}
	encoded, ok := strings.CutPrefix(text, textPrefix)
	if !ok {
		return []byte(text), nil
	}
	secret, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, &transports.Error{Class: messages.ClassConfig,
			Text: "the keyring holds something else than what was stored for " + quoteLine(key),
			Fix:  "remove that entry and sign in again"}
	}
	return secret, nil
}

// Put implements Store. The error is ErrTooLarge (by errors.Is) if the keyring does not take a secret of this size. Bytes that a
// keyring could change (spaces at the ends, zero bytes) are stored in base64.
func (k *Keyring) Put(ctx context.Context, key string, secret []byte) error {
	text := string(secret)
	// A text that begins with the prefix itself must be encoded as well, or Get would decode it.
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) || strings.HasPrefix(text, textPrefix) ||
		strings.TrimSpace(text) != text || text == "" {
		text = textPrefix + base64.StdEncoding.EncodeToString(secret)
	}
	_, err := k.callBounded(ctx, "written", func() (string, error) { return "", keyring.Set(k.service, key, text) })
	return err
}

// Delete implements Store.
func (k *Keyring) Delete(ctx context.Context, key string) error {
	_, err := k.callBounded(ctx, "written", func() (string, error) { return "", keyring.Delete(k.service, key) })
	// Delete of a missing secret is no error for a Store.
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// callBounded runs one call of the library, which takes no context, in a goroutine. When ctx ends it returns an error; the
// goroutine goes on and holds callLock until the library returns.
func (k *Keyring) callBounded(ctx context.Context, doing string, f func() (string, error)) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, keyringTime)
	defer cancel()
	select {
	case k.callLock <- struct{}{}:
	case <-ctx.Done():
		return "", k.waitError(ctx, doing)
	}
	type answer struct {
		text string
		err  error
	}
	// The channel has room, so that a call that returns late does not leave its goroutine behind.
	done := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if v := recover(); v != nil {
				a = answer{err: fmt.Errorf("panic: %.200v", v)}
			}
			// The next call may begin when the library has returned, not when the caller stopped waiting.
			<-k.callLock
			done <- a
		}()
		a.text, a.err = f()
	}()
	select {
	case a := <-done:
		return a.text, k.translateError(a.err, doing)
	case <-ctx.Done():
		return "", k.waitError(ctx, doing)
	}
}

// waitError is the error for a call that was not answered in time. doing completes "waiting for the keyring to be …".
func (k *Keyring) waitError(ctx context.Context, doing string) *transports.Error {
	e := contextError(ctx, "waiting for the keyring to be "+doing)
	if e.Class == messages.ClassTimeout {
		e.Fix = "unlock it: it may be asking for its password"
	}
	return e
}

// translateError translates the library's error into one of this package.
func (k *Keyring) translateError(err error, doing string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, keyring.ErrNotFound):
		return ErrNotFound
	case errors.Is(err, keyring.ErrSetDataTooBig):
		return &transports.Error{Class: messages.ClassConfig, Err: ErrTooLarge, Text: ErrTooLarge.Error(),
			Fix: "keep secrets in encrypted files"}
	}
	// On macOS the library's error may repeat the arguments of a program, so that keyringReason leaves it out there.
	return &transports.Error{Class: messages.ClassNetwork, Text: "the keyring cannot be " + doing + keyringReason(err),
		Fix: "unlock it, or keep secrets in encrypted files"}
}
