package auth

import (
	"context"
	"crypto/sha256"
	"errors"
)

// Store keeps secrets by key. It is safe for concurrent use, also by several processes. A key is any text; it is no
// secret and may appear in errors and file names.
type Store interface {
	// Get gives the secret, which the caller owns. The error is ErrNotFound (by errors.Is) if there is none.
	Get(ctx context.Context, key string) ([]byte, error)
	// Put stores a secret in the place of the one before, atomically: a crash leaves the old or the new.
	Put(ctx context.Context, key string, secret []byte) error
	// Delete removes a secret. One that is not there is no error.
	Delete(ctx context.Context, key string) error
	// Where says for people where secrets are: "keyring", "encrypted files in ~/…".
	Where() string
}

// ErrNotFound says that a store holds nothing under a key. Every other error is a *transports.Error.
var ErrNotFound = errors.New("no secret is stored under this key")

// Version identifies one content of a key. The zero Version is that of a key without content. It is a digest of the
// content: the same content has the same version, in every process.
type Version [sha256.Size]byte

// VersionOf is the version of a secret; of an empty one, the zero Version.
func VersionOf(secret []byte) Version {
	if len(secret) == 0 {
		return Version{}
	}
	return sha256.Sum256(secret)
}
