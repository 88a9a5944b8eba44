package auth

// AtStep sets what is called at every step that a crash could follow. Before anything runs.
func AtStep(f func(name string)) { onTestStep = f }

// Cheap makes new stores derive their key in no time.
func Cheap() { argonCost = storeHeader{Time: 1, MemoryKiB: 64, Threads: 1} }

// OpenAuto is Open with KindAuto and a keyring that is not looked for: the library's mock, most likely.
func OpenAuto(opts Options) (Store, error) {
	files, err := OpenFiles(opts)
	if err != nil {
		return nil, err
	}
	ring := &Keyring{service: "test", callLock: make(chan struct{}, 1)}
	return &autoStore{opts: opts, ring: ring, files: files, locks: NewLocks(opts.Dir), warned: map[string]bool{}}, nil
}
