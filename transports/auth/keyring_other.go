//go:build !((dragonfly && cgo) || (freebsd && cgo) || linux || netbsd || openbsd)

package auth

import (
	"context"
	"errors"
	"runtime"

	"github.com/zalando/go-keyring"
)

// probeKeyring reads an entry that is not there: the keyring is a part of macOS and Windows, and answers that it has none. Other
// systems have no keyring that the library knows.
func probeKeyring(context.Context) error {
	if runtime.GOOS != "darwin" && runtime.GOOS != "windows" {
		return errors.New("this system has none that is known")
	}
	if _, err := keyring.Get("mcpvisor", "probe"); err != nil && !errors.Is(err, keyring.ErrNotFound) {
		return err
	}
	return nil
}

// keyringReason returns nothing, because an error may repeat the output of a program that the library runs.
func keyringReason(error) string { return "" }
