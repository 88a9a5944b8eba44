package credentials

import (
	"os"
	"path/filepath"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// DefaultAuthOptions returns where sign-ins are kept by default: the system's
// keyring, else encrypted files in auth.DefaultDir. Their key is made from the passphrase in MCPVISOR_PASSPHRASE, if
// that is set, and otherwise stands in a file of its own beside the person's configuration (secrets.key, 0600): a thief with
// a copy of one of the two directories cannot read the sign-ins.
func DefaultAuthOptions() (auth.Options, error) {
	dir, err := auth.DefaultDir()
	if err != nil {
		return auth.Options{}, err
	}
	o := auth.Options{Dir: dir}
	if own, err := os.UserConfigDir(); err == nil {
		o.KeyFile = filepath.Join(own, "mcpvisor", "secrets.key")
	}
	return o, nil
}

// LocksFor returns the locks that belong to a store of those options: all processes that share the store must share the locks,
// because two refreshes with one refresh token end the sign-in at many servers.
func LocksFor(o auth.Options) *auth.Locks { return auth.NewLocks(filepath.Join(o.Dir, "locks")) }

// openStore opens the store of sign-ins once and keeps it. An error is not kept, because a keyring may be unlocked later: the
// next attempt tries again. opening is held meanwhile, so that a person sees the keyring's question once.
func (k *Set) openStore() (auth.Store, *auth.Locks, error) {
	k.opening.Lock()
	defer k.opening.Unlock()
	if k.openedStore != nil {
		return k.openedStore, k.openedLocks, nil
	}
	o, err := DefaultAuthOptions()
	// Locks of the program come first; they must be those of all processes that share the store.
	locks := k.Locks
	if locks == nil {
		// A store in memory belongs to this process alone, so its locks need no files.
		if _, own := k.Store.(*auth.Memory); own || err != nil && k.Store != nil {
			locks = auth.NewLocks("")
		} else {
			locks = LocksFor(o)
		}
	}
	store := k.Store
	if store == nil {
		if err != nil {
			return nil, nil, err
		}
		o.Warn = func(text string) { k.Log.Warn(text) }
		if store, err = auth.Open(o); err != nil {
			return nil, nil, err
		}
	}
	if _, own := store.(*auth.Memory); k.Store != nil && !own && k.AskProgram != nil {
		store = programStore{store, k.AskProgram}
	}
	k.openedStore, k.openedLocks = store, locks
	return store, locks, nil
}

// mayHoldSignIn reports whether the store may have a sign-in. On a machine where no person has ever signed in, the keyring is not
// asked: that may take seconds, or show a person a question.
func (k *Set) mayHoldSignIn() bool {
	if k.Store != nil {
		return true
	}
	dir, err := auth.DefaultDir()
	if err != nil {
		return false
	}
	// The time is kept for isKnownEmpty, which answers the next requests without a look.
	if _, err = os.Stat(dir); err != nil {
		now := time.Now()
		k.emptyAt.Store(&now)
	}
	return err == nil
}

// storeCheckEvery is the least time between two checks of requests whether the first sign-in of this machine was made, by another
// process. It bounds how long they are sent without it; a request that the server refuses checks at once.
const storeCheckEvery = time.Second

// isKnownEmpty reports that the store's directory was missing less than storeCheckEvery ago. A request asks this first, because
// with a look at the file system each, a call would take a tenth longer.
func (k *Set) isKnownEmpty() bool {
	at := k.emptyAt.Load()
	return at != nil && time.Since(*at) < storeCheckEvery
}
