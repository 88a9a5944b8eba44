//go:build !linux

package ask

// flushInput does nothing on this system: of what was typed before a question only what the lineReader has read is dropped.
func flushInput(any) {}
