//go:build !unix

package main

import "os/exec"

func detachProcess(*exec.Cmd) {}

// isForeground is always true: there is no job control here.
func isForeground(any) bool { return true }
