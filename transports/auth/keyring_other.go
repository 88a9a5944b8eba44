//go:build !((dragonfly && cgo) || (freebsd && cgo) || linux || netbsd || openbsd)

package auth

import (
	"context"
	"errors"
	"runtime"

	"github.com/zalando/go-keyring"
)

// probeKeyring: the keyring is a part of these systems, and asked for something that is not there. Other systems have
// none.
func probeKeyring(context.Context) error {
	if runtime.GOOS != "darwin" && runtime.GOOS != "windows" {
		return errors.New("this system has none that is known")
	}
	if _, err := keyring.Get("mcpvisor", "probe"); err != nil && !errors.Is(err, keyring.ErrNotFound) {
		return err
	}
	return nil
}

// keyringReason tells nothing: an error may repeat what a program printed.
func keyringReason(error) string { return "" }
