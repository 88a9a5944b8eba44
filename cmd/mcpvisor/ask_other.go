//go:build !unix

package main

import "os/exec"

func detach(*exec.Cmd) {}

// foreground is always true: there is no job control here.
func foreground(any) bool { return true }
