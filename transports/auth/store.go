package auth

import (
	"context"
	"crypto/sha256"
	"errors"
)

// Store keeps secrets by key. It is safe for concurrent use, also by several processes. A key is any text; it is not secret and
// may appear in errors and file names.
type Store interface {
	// Get returns the secret, which the caller owns. The error is ErrNotFound (by errors.Is) if there is none.
	Get(ctx context.Context, key string) ([]byte, error)
	// Put stores a secret in place of the one before, atomically: a crash leaves the old or the new one.
	Put(ctx context.Context, key string, secret []byte) error
	// Delete removes a secret. It is no error if there is none.
	Delete(ctx context.Context, key string) error
	// Where names for people the place of the secrets: "keyring", "encrypted files in ~/…".
	Where() string
}

// ErrNotFound means that a store holds nothing under a key. Every other error of a Store is a *transports.Error.
var ErrNotFound = errors.New("no secret is stored under this key")

// Version identifies one content of a key. The zero Version is that of a key without content. It is a digest of the content, so
// that the same content has the same version in every process and no store need keep counters.
type Version [sha256.Size]byte

// VersionOf returns the version of a secret; the zero Version for an empty one.
func VersionOf(secret []byte) Version {
	if len(secret) == 0 {
		return Version{}
	}
	return sha256.Sum256(secret)
}
