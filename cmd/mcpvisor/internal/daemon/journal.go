package daemon

import (
	"context"

	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// runningJournal writes what becomes of a manager's servers, so that mcpvisor why knows it after the end of the daemon. A nil one writes nothing.
type runningJournal struct {
	file *control.Journal
	stop context.CancelFunc
	// written is closed after the last line.
	written chan struct{}
}

// startJournal begins to write. The caller calls stopWriting before it closes the manager, and closeFile.
func startJournal(path string, m *supervisor.Manager, local control.LocalConfig) (*runningJournal, error) {
	file, err := control.OpenJournal(path)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	j := &runningJournal{file: file, stop: stop, written: make(chan struct{})}
	go func() { // it ends with stopWriting
		defer close(j.written)
		defer func() { _ = recover() }() // the journal is no reason to end the servers
		_ = j.file.Follow(ctx, m, local)
	}()
	return j, nil
}

// stopWriting writes that the run has ended, and waits for that line: the servers stand in it as they were.
func (j *runningJournal) stopWriting() {
	if j != nil {
		j.stop()
		<-j.written
	}
}

// closeFile closes the file after stopWriting.
func (j *runningJournal) closeFile() error {
	if j == nil {
		return nil
	}
	return j.file.Close()
}
