package auth

import (
	"context"
	"os"
	"path/filepath"
	"runtime"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// Open opens the store that the options ask for. With KindAuto that is the keyring if there is one, with encrypted files for
// secrets that the keyring does not take, else the encrypted files. Open takes at most 3 s, for a keyring that does not answer.
func Open(opts Options) (Store, error) {
	switch opts.Kind {
	case KindMemory:
		return NewMemory(), nil
	case KindFiles:
		return asStore(OpenFiles(opts))
	case KindKeyring:
		return asStore(OpenKeyring(context.Background(), opts))
	case KindAuto, "":
		return openAuto(opts)
	}
	return nil, &transports.Error{Class: messages.ClassConfig, Text: "unknown kind of store " + quoteLine(string(opts.Kind)),
		Fix: "known are auto, keyring, files and memory"}
}

// asStore keeps a nil pointer from becoming a Store that is not nil, which a caller would use.
func asStore[S Store](s S, err error) (Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// openAuto opens the keyring and the files. It fails only if both are missing, and then explains both.
func openAuto(opts Options) (Store, error) {
	if !filepath.IsAbs(opts.Dir) {
		// OpenFiles refuses the path with the right error. Without a directory there could be no marks either.
		_, err := OpenFiles(opts)
		return nil, err
	}
	// Both are opened, whichever will be used: the marks of earlier runs decide where each secret is.
	files, noFiles := OpenFiles(opts)
	ring, noRing := OpenKeyring(context.Background(), opts)
	// The reason for the files is the one that a person can mend by an option.
	if ring == nil && files == nil {
		e := *asError(noFiles)
		e.Text += ", and there is no keyring (" + asError(noRing).Text + ")"
		return nil, &e
	}
	return &autoStore{opts: opts, ring: ring, files: files, ringErr: noRing, filesErr: noFiles,
		locks: NewLocks(opts.Dir), warned: map[string]bool{}}, nil
}

// DefaultDir returns the directory for secrets that are not in the keyring: secrets below the user's directory for state,
// $XDG_STATE_HOME/mcpvisor (default ~/.local/state), on macOS under ~/Library/Application Support, on Windows under
// %LocalAppData%. A relative XDG_STATE_HOME does not count, as its specification demands.
func DefaultDir() (string, error) {
	// It counts on every system if it is set, so that tests and containers can move the directory.
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "mcpvisor", "secrets"), nil
	}
	var base, below string
	var err error
	switch runtime.GOOS {
	case "windows":
		base, err = os.UserCacheDir() // %LocalAppData%
		below = filepath.Join("mcpvisor", "state")
	case "darwin", "ios":
		base, err = os.UserConfigDir() // ~/Library/Application Support
		below = filepath.Join("mcpvisor", "state")
	default:
		base, err = os.UserHomeDir()
		below = filepath.Join(".local", "state", "mcpvisor")
	}
	if err != nil {
		return "", &transports.Error{Class: messages.ClassConfig, Text: "there is no directory for secrets: " + errorReason(err),
			Fix: "set HOME"}
	}
	return filepath.Join(base, below, "secrets"), nil
}
