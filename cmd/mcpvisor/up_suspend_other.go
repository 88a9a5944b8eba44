//go:build !unix

package main

import "os"

// suspendSignals never tells of any: there is no Ctrl-Z here.
func suspendSignals() (signals <-chan os.Signal, end func()) { return nil, func() {} }

func suspendProcess() {}
