//go:build (dragonfly && cgo) || (freebsd && cgo) || linux || netbsd || openbsd

package auth

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/godbus/dbus/v5"
)

// probeKeyring asks the bus whether a program is, or can be started as, the Secret Service, and asks that one for its default
// collection. It reads no secret, so that a locked keyring does not ask for its password.
//
// The library would start a bus of its own where there is none, and leave it behind: so hasSessionBus looks for one first.
func probeKeyring(ctx context.Context) error {
	if !hasSessionBus() {
		return errors.New("there is no session bus")
	}
	conn, err := dbus.ConnectSessionBus(dbus.WithContext(ctx))
	if err != nil {
		return err
	}
	defer conn.Close()
	const name = "org.freedesktop.secrets"
	var owned, startable []string
	if err := conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.ListNames", 0).Store(&owned); err != nil {
		return err
	}
	// An error here does not end the probe: a program that runs already suffices.
	_ = conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.ListActivatableNames", 0).Store(&startable)
	if !slices.Contains(owned, name) && !slices.Contains(startable, name) {
		return errors.New("nobody offers " + name)
	}
	var collection dbus.ObjectPath
	err = conn.Object(name, "/org/freedesktop/secrets").
		CallWithContext(ctx, "org.freedesktop.Secret.Service.ReadAlias", 0, "default").Store(&collection)
	// The path "/" is how D-Bus says none.
	if err == nil && (collection == "" || collection == "/") {
		err = errors.New("there is no default keyring")
	}
	return err
}

// hasSessionBus reports whether a session bus runs, by the variable or by the socket that systemd and others make.
func hasSessionBus() bool {
	if address := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); address != "" {
		return !strings.HasPrefix(address, "autolaunch:")
	}
	for _, name := range []string{"bus", "dbus-session"} {
		if _, err := os.Stat(fmt.Sprintf("/run/user/%d/%s", os.Getuid(), name)); err == nil {
			return true
		}
	}
	return false
}

// keyringReason returns why a call failed: errors of D-Bus name the method that was called, and no secret.
func keyringReason(err error) string { return ": " + errorReason(err) }
