//go:build !unix

package main

import "os"

// suspensions never tells of any: there is no Ctrl-Z here.
func suspensions() (wishes <-chan os.Signal, end func()) { return nil, func() {} }

func suspend() {}
