//go:build !unix

package up

import "os"

// suspendSignals returns no channel, because this system has no Ctrl-Z.
func suspendSignals() (signals <-chan os.Signal, end func()) { return nil, func() {} }

// suspendProcess is never called on this system.
func suspendProcess() {}
