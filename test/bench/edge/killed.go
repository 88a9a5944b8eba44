package edge

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/test/servers"
)

// killTimes is how long after the end of a server sessions are told that its tools have gone, and how long after its return that they
// are back: of the session before which 99 of 100 are told.
type killTimes struct {
	gone, back time.Duration
	// notified is how many sessions were told of both.
	notified int
}

// measureKill kills a server that n sessions with a stream see.
func measureKill(ctx context.Context, n int) (k killTimes, err error) {
	command, args := servers.Command("cheap")
	m, err := supervisor.Start(ctx, supervisor.Config{Servers: map[string]supervisor.Spec{"one": {Command: command, Args: args, Era: messages.EraLegacy}}})
	if err != nil {
		return k, err
	}
	defer func() { _ = m.Close(context.WithoutCancel(ctx)) }()
	if err := m.Ready(ctx, "one"); err != nil {
		return k, err
	}
	g := gateway.New(gateway.Config{Manager: m})
	defer g.Close()
	c, err := gather(ctx, g, n)
	if err != nil {
		return k, err
	}
	defer c.scatter()
	if err := listTools(ctx, c); err != nil {
		return k, err
	}
	events := m.Watch(1024)
	defer events.Close()
	s, err := m.ServerStatus("one")
	if err != nil {
		return k, err
	}
	process, err := os.FindProcess(s.PID)
	if err != nil || s.PID <= 1 {
		return k, errors.New("the server's process is not known")
	}
	gone, back := make([]time.Time, n), make([]time.Time, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			if c.heard(i, "tools/list_changed") == nil {
				gone[i] = time.Now()
			}
			if c.heard(i, "tools/list_changed") == nil {
				back[i] = time.Now()
			}
		})
	}
	killed := time.Now()
	if err := process.Kill(); err != nil {
		return k, err
	}
	connected, err := awaitReturn(ctx, events)
	if err != nil {
		c.scatter() // the readers end
	}
	time.AfterFunc(30*time.Second, c.scatter) // so do those that are never told
	all.Wait()
	for i := range n {
		if !gone[i].IsZero() && !back[i].IsZero() {
			k.notified++
		}
	}
	k.gone, k.back = late(gone).Sub(killed), late(back).Sub(connected)
	return k, err
}

// awaitReturn waits until the server is connected again.
func awaitReturn(ctx context.Context, events *supervisor.Watcher) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	lost := false
	for e := range events.Events(ctx) {
		if e.Kind != messages.EventPhase || e.Status == nil {
			continue
		}
		if e.Status.Status != messages.Connected {
			lost = true
		} else if lost {
			return time.Now(), nil
		}
	}
	return time.Time{}, errors.New("the server did not come back")
}

// late returns the time by which 99 of 100 have come.
func late(times []time.Time) time.Time {
	times = slices.SortedFunc(slices.Values(times), time.Time.Compare)
	return times[len(times)*99/100]
}
