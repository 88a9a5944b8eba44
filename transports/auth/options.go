package auth

import (
	"context"
	"os"
)

// Options say where and how secrets are kept. Dir is needed for everything but a Memory.
type Options struct {
	// Kind selects the store that Open opens; empty means KindAuto.
	Kind Kind
	// Dir is the directory of the encrypted files and of the locks, made for the user alone (0700) if need be. All processes that
	// are to share secrets must name the same one.
	Dir string
	// Passphrase returns the passphrase of the encrypted files. The store calls it once, when the first secret is read or
	// written; it may ask a person. nil means the environment variable MCPVISOR_PASSPHRASE, if that is set.
	Passphrase func(ctx context.Context) ([]byte, error)
	// KeyFile is a file that holds the key of the encrypted files, for machines where no person can type a passphrase. The store
	// makes it (0600) with the first secret. It protects copies of Dir that do not hold it (a backup, a shared home), but not
	// against a program that can read both. If there is a passphrase as well, that is used.
	KeyFile string
	// Plain allows files in the clear (0600) if there is neither a passphrase nor a key file. Without it such a store is an
	// error.
	Plain bool
	// Service is the name under which the keyring shows the secrets, empty for "mcpvisor".
	Service string
	// Warn gets texts that a person should read: that a secret was too large for the keyring, and where it is now. It is called
	// without a lock, and the text holds no secret; nil drops it.
	Warn func(text string)
}

// Kind names a kind of store in a configuration.
type Kind string

// The kinds.
const (
	// KindAuto selects the operating system's keyring if there is one, else encrypted files.
	KindAuto Kind = "auto"
	// KindKeyring selects the keyring and nothing else.
	KindKeyring Kind = "keyring"
	// KindFiles selects the encrypted files.
	KindFiles Kind = "files"
	// KindMemory selects a store that ends with the process.
	KindMemory Kind = "memory"
)

// passphraseVariable names the variable that may hold the passphrase, for programs that have no terminal to ask on.
const passphraseVariable = "MCPVISOR_PASSPHRASE"

// passphraseFunc returns the function that gets the passphrase, nil if there is none. The variable is read at each call, so that
// its value is not kept here.
func (o *Options) passphraseFunc() func(ctx context.Context) ([]byte, error) {
	if o.Passphrase != nil {
		return o.Passphrase
	}
	// An empty variable counts as none, because an empty passphrase protects nothing.
	if os.Getenv(passphraseVariable) == "" {
		return nil
	}
	return func(context.Context) ([]byte, error) { return []byte(os.Getenv(passphraseVariable)), nil }
}

// emitWarning gives a text to Warn, if there is one.
func (o *Options) emitWarning(text string) {
	if o.Warn != nil {
		o.Warn(text)
	}
}
