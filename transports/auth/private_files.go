package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/files"
)

// privateDir makes a directory if need be, and refuses one that others may look into or write to: they could exchange its files.
func privateDir(dir string) error {
	// A link to a directory is allowed: the check is of the directory itself.
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return storeError("the directory "+shortPath(dir)+" cannot be made", err)
		}
		info, err = os.Stat(dir)
	}
	switch {
	// The directory cannot be looked at: a parent may be closed to this user.
	case err != nil:
		return storeError("the directory "+shortPath(dir)+" cannot be used", err)
	case !info.IsDir():
		return &transports.Error{Class: messages.ClassConfig, Text: shortPath(dir) + " is no directory", Fix: "remove it"}
	}
	return checkPrivate(dir, info)
}

// checkPrivate refuses a file or directory that others may use.
func checkPrivate(path string, info fs.FileInfo) error {
	problem, mode := files.Exposure(info), "0600"
	if info.IsDir() {
		mode = "0700"
	}
	if problem == "" {
		return nil
	}
	return &transports.Error{Class: messages.ClassConfig, Text: shortPath(path) + " " + problem,
		Fix: "make it yours alone (mode " + mode + "), and sign in again if somebody may have read it"}
}

// errNoFile means that a pipe, a device or a directory stands where a file should.
var errNoFile = errors.New("no regular file")

// openRegular opens a regular file and nothing else, because opening a pipe, or reading a device, could block for ever.
func openRegular(path string) (*os.File, error) {
	info, err := os.Stat(path) // a person's own link to a file is allowed
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errNoFile
	}
	return os.OpenFile(path, os.O_RDONLY|files.NoWait, 0)
}

// readPrivate reads a file that only the user may read, of at most maxSecret and the overhead of sealing. The error is
// fs.ErrNotExist (by errors.Is) if there is none.
func readPrivate(path string) ([]byte, error) {
	f, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fs.ErrNotExist
	}
	if errors.Is(err, errNoFile) {
		return nil, damagedError(path, "is no regular file")
	}
	if err != nil {
		return nil, storeError(shortPath(path)+" cannot be read", err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, storeError(shortPath(path)+" cannot be read", err)
	case !info.Mode().IsRegular(): // it was exchanged after openRegular had looked
		return nil, damagedError(path, "is no regular file")
	}
	if err := checkPrivate(path, info); err != nil {
		return nil, err
	}
	// 1 KiB is more than the magic, the nonce and the tag take.
	if info.Size() > maxSecret+1<<10 {
		return nil, damagedError(path, "is too long")
	}
	// The size is that of the open file; io.ReadAll would grow in steps and leave copies of the secret in memory.
	b := make([]byte, info.Size())
	for n := 0; n < len(b); {
		m, err := f.Read(b[n:])
		if n += m; err != nil {
			return nil, storeError(shortPath(path)+" cannot be read", err)
		}
	}
	return b, nil
}

// replaceFile writes a file so that a crash leaves the old or the new one. The caller holds a lock, so that no other process does
// so at the same time.
func replaceFile(path string, content []byte) error {
	// The name is fixed, so that what a killed process has left is found and removed by the next writer.
	next := path + ".new"
	_ = os.Remove(next) // a killed process may have left it; opening a pipe there would block
	// O_EXCL follows no link that another program could have put there.
	f, err := os.OpenFile(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return storeError(shortPath(path)+" cannot be written", err)
	}
	testStep("file: created")
	err = files.Replace(f, path, func() error {
		// The halves let tests kill the process between them.
		half := len(content) / 2
		if _, err := f.Write(content[:half]); err != nil {
			return err
		}
		testStep("file: half")
		_, err := f.Write(content[half:])
		testStep("file: written")
		return err
	}, func() error {
		testStep("file: synced")
		return nil
	})
	if err != nil {
		return storeError(shortPath(path)+" cannot be written", err)
	}
	testStep("file: renamed")
	return nil
}

// fileName returns a file name for a key: a part that a person recognises, and a digest that tells keys apart.
func fileName(key string) string {
	// 10 bytes of the digest, 20 characters, keep names short, and no two keys share them by accident.
	sum := sha256.Sum256([]byte(key))
	// Keys hold URLs: what is no letter, digit or hyphen could mean a folder, or nothing at all, to some file system.
	readable := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, key)
	return readable[:min(len(readable), 40)] + "-" + hex.EncodeToString(sum[:10])
}

// shortPath returns a path for people, with ~ for their home directory.
func shortPath(path string) string {
	if home, err := os.UserHomeDir(); err == nil && home != "/" {
		if rest, ok := strings.CutPrefix(path, home+string(filepath.Separator)); ok {
			path = "~" + string(filepath.Separator) + rest
		}
	}
	return messages.Line(path, 300)
}

// storeError is the error for trouble of a store that may pass, such as a full disk, and so has ClassNetwork. A missing
// permission does not pass, and has ClassConfig.
func storeError(text string, err error) *transports.Error {
	e := &transports.Error{Class: messages.ClassNetwork, Text: text + ": " + errorReason(err), Err: innermostError(err)}
	if errors.Is(err, fs.ErrPermission) {
		e.Class, e.Fix = messages.ClassConfig, "give this user the right to it"
	}
	return e
}

// damagedError is the error for a file whose content cannot be used any more.
func damagedError(path, what string) *transports.Error {
	return &transports.Error{Class: messages.ClassConfig, Text: shortPath(path) + " " + what,
		Fix: "remove it and sign in again"}
}

// formatError is the error for a file whose form cannot be read. What a newer program wrote is not to be removed.
func formatError(path string, err error) *transports.Error {
	var newer *files.NewerError
	if errors.As(err, &newer) {
		return &transports.Error{Class: messages.ClassConfig, Text: newer.Error(), Fix: "upgrade mcpvisor", Err: newer}
	}
	return damagedError(path, "is damaged")
}
