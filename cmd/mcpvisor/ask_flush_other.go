//go:build !linux

package main

// flushInput does nothing here: of what was typed before a question only what has been read is dropped.
func flushInput(any) {}
