package lists

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mcpvisor/mcpvisor/transports/files"
)

const (
	// keyName is the file of the key, keySize its length in bytes.
	keyName = "key"
	keySize = 32
	// maxFile bounds what is read of one file: more than any list, which has at most 64 MiB when it arrives.
	maxFile = 128 << 20
)

// readKey reads the directory's key, and makes one if there is none. made says that this process made it: then no list can be read.
func readKey(dir string) (key []byte, made bool, err error) {
	path := filepath.Join(dir, keyName)
	// Only a missing key is made; one that cannot be used must be removed by the person.
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		if made, err = makeKey(dir, path); err != nil {
			return nil, false, err
		}
	}
	if key, err = readPrivate(path, keySize); err != nil {
		return nil, false, err
	}
	// A short file may be a key of something else, so it is not replaced.
	if len(key) != keySize {
		return nil, false, fmt.Errorf("%s holds no key: remove it", path)
	}
	return key, made, nil
}

// makeKey makes a key file. If several processes try, one succeeds: a link appears whole, and replaces no file.
func makeKey(dir, path string) (made bool, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return false, err
	}
	// The key is written whole before it gets its name.
	f, err := os.CreateTemp(dir, temporaryPattern) // mode 0600
	if err != nil {
		return false, err
	}
	defer os.Remove(f.Name())
	key := make([]byte, keySize)
	_, _ = rand.Read(key) // never fails
	_, err = f.Write(key)
	// A key that is lost in a crash would make every list unreadable.
	err = errors.Join(err, f.Sync(), f.Close())
	if err != nil {
		return false, err
	}
	// A link fails if the name exists, while a rename would replace another process's key.
	err = os.Link(f.Name(), path)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

// readPrivate reads a file of at most so many bytes that only the user can access. A link, a pipe and a device are refused.
func readPrivate(path string, most int64) ([]byte, error) {
	// The look before the open refuses what must not even be opened, such as a pipe.
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|files.NoFollow|files.NoWait, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	// The look after the open is at the file that is read: the name may lead to another one by now.
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if why := files.Exposure(info); why != "" || !info.Mode().IsRegular() || info.Size() > most {
		if why == "" {
			why = "is no file of ours"
		}
		return nil, fmt.Errorf("%s %s: remove it", path, why)
	}
	return io.ReadAll(io.LimitReader(f, most))
}
