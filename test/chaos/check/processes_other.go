//go:build !linux

package check

// countsTree says that this system tells which processes a process has started.
const countsTree = false

func processTree(int) []process { return nil }

func (p process) isRunning() bool { return false }

func (p process) kill() {}
