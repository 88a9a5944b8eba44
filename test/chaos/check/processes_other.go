//go:build !linux

package check

// countsTree says that this system tells which processes a process has started.
const countsTree = false

func descendants(int) []process { return nil }

func (p process) lives() bool { return false }

func (p process) kill() {}
