package auth

import (
	"context"
	"os"
)

// Options say where secrets are kept. Dir is needed for everything but a Memory.
type Options struct {
	// Kind is which store Open opens; empty is KindAuto.
	Kind Kind
	// Dir is the directory of the encrypted files, made for the user alone (0700) if need be: the same for all
	// processes that are to share secrets.
	Dir string
	// Passphrase gives the passphrase of the encrypted files. It is asked once, when the first secret is read or
	// written, and may ask a person. nil is the environment variable MCPVISOR_PASSPHRASE, if that is set.
	Passphrase func(ctx context.Context) ([]byte, error)
	// KeyFile is a file that holds the key of the encrypted files, for machines where no person can type a passphrase. It
	// is made (0600) with the first secret. It protects copies of Dir that do not hold it (a backup, a shared home),
	// and nothing against a program that can read both. A passphrase comes before it.
	KeyFile string
	// Plain allows files in the clear (0600) if there is neither a passphrase nor a key file. Without it that is an
	// error.
	Plain bool
	// Service is the name under which the keyring shows the secrets, empty for "mcpvisor".
	Service string
	// Warn is told what a person should know: that a secret was too large for the keyring and where it is now. It is
	// called without a lock; nil drops the text, which holds no secret.
	Warn func(text string)
}

// Kind is a kind of store.
type Kind string

// The kinds.
const (
	// KindAuto is the operating system's keyring if there is one, else encrypted files.
	KindAuto Kind = "auto"
	// KindKeyring is the keyring and nothing else.
	KindKeyring Kind = "keyring"
	// KindFiles is the encrypted files.
	KindFiles Kind = "files"
	// KindMemory forgets everything with the process.
	KindMemory Kind = "memory"
)

// passphraseVariable names the variable that may hold the passphrase, for programs that have no terminal to ask on.
const passphraseVariable = "MCPVISOR_PASSPHRASE"

// passphraseFunc is how to get the passphrase, nil if there is none.
func (o *Options) passphraseFunc() func(ctx context.Context) ([]byte, error) {
	if o.Passphrase != nil {
		return o.Passphrase
	}
	if os.Getenv(passphraseVariable) == "" {
		return nil
	}
	return func(context.Context) ([]byte, error) { return []byte(os.Getenv(passphraseVariable)), nil }
}

func (o *Options) emitWarning(text string) {
	if o.Warn != nil {
		o.Warn(text)
	}
}
