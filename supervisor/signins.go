package supervisor

import (
	"os"
	"path/filepath"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// DefaultAuthOptions is where the manager and the mcpvisor command keep sign-ins if nothing else is said: the system's
// keyring, else encrypted files in auth.DefaultDir. Their key is made from the passphrase in MCPVISOR_PASSPHRASE, if
// that is set, and otherwise stands in a file of its own beside the person's configuration (secrets.key, 0600): who has
// a copy of the one directory cannot read it without the other.
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

// LocksFor are the locks that belong to a store of those options: all processes that share the one share the other.
func LocksFor(o auth.Options) *auth.Locks { return auth.NewLocks(filepath.Join(o.Dir, "locks")) }

// openStore opens the store of sign-ins, once. An error is not kept: the next attempt may be luckier.
func (k *credentials) openStore() (auth.Store, *auth.Locks, error) {
	k.opening.Lock()
	defer k.opening.Unlock()
	if k.store != nil {
		return k.store, k.locks, nil
	}
	o, err := DefaultAuthOptions()
	locks := k.cfg.AuthLocks
	if locks == nil {
		if _, own := k.cfg.AuthStore.(*auth.Memory); own || err != nil && k.cfg.AuthStore != nil {
			locks = auth.NewLocks("")
		} else {
			locks = LocksFor(o)
		}
	}
	store := k.cfg.AuthStore
	if store == nil {
		if err != nil {
			return nil, nil, err
		}
		log := k.cfg.Logger
		o.Warn = func(text string) { log.Warn(text) }
		if store, err = auth.Open(o); err != nil {
			return nil, nil, err
		}
	}
	k.store, k.locks = store, locks
	return store, locks, nil
}

// mayHoldSignIn reports whether there may be a sign-in. A program that nobody has ever signed in with does not ask the
// keyring: that may take seconds, or show a person a question.
func (k *credentials) mayHoldSignIn() bool {
	if k.cfg.AuthStore != nil {
		return true
	}
	dir, err := auth.DefaultDir()
	if err != nil {
		return false
	}
	if _, err = os.Stat(dir); err != nil {
		now := time.Now()
		k.emptyAt.Store(&now)
	}
	return err == nil
}

// storeCheckEvery is how often requests look whether there is a sign-in meanwhile, at most. It bounds how long they go on without
// the first one of a machine, which another process makes; a request that is refused looks at once.
const storeCheckEvery = time.Second

// isKnownEmpty reports that somebody has just looked, and found that nobody has ever signed in. A request asks this
// first: with a look at the file system each, a call would take a tenth longer.
func (k *credentials) isKnownEmpty() bool {
	at := k.emptyAt.Load()
	return at != nil && time.Since(*at) < storeCheckEvery
}
