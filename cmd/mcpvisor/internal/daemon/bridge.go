package daemon

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/daemon/client"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/audit"
	"github.com/mcpvisor/mcpvisor/supervisor/discover"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// serveBridge greets a bridge and serves its agent until one of them goes.
func (d *daemon) serveBridge(ctx context.Context, b *bridgeConn, examine func(context.Context) (context.Context, error)) error {
	_ = b.SetDeadline(time.Now().Add(client.GreetingTime))
	refuse := func(err error) error {
		_ = client.WriteLine(b.Conn, client.Welcome{Protocol: client.Protocol, Version: supervisor.Version(), PID: os.Getpid(), Error: err.Error(), Short: client.IsShortage(err)})
		return err
	}
	ctx, err := examine(ctx)
	if err != nil {
		return refuse(err)
	}
	r := bufio.NewReaderSize(b.Conn, 64<<10)
	var h client.Hello
	if err := client.ReadLine(r, &h); err != nil {
		return nil // it has said nothing that could be answered
	}
	began := beganWaiting(h, time.Now())
	// A bridge of a newer program does not talk to an older daemon: that one ends, and the bridge starts its own.
	if h.Action == client.ActionEnd || d.own.givesWayTo(h) {
		_ = client.WriteLine(b.Conn, client.Welcome{Protocol: client.Protocol, PID: os.Getpid(), Draining: true})
		if h.Action == client.ActionEnd {
			_ = b.SetDeadline(time.Time{})
			d.awaitEnd(b)
			d.end(errStopped)
			return nil
		}
		d.end(errReplaced)
		return nil
	}
	if h.Protocol < client.OldestProtocol || h.Protocol > client.Protocol {
		return refuse(fmt.Errorf("the daemon (process %d, version %s) speaks protocol %d, and this mcpvisor (%s) %d; use the newer one, or end the "+
			"daemon with: mcpvisor down", os.Getpid(), supervisor.Version(), client.Protocol, messages.Line(h.Version, 40), h.Protocol))
	}
	found, err := discover.Load(discover.Options{Dir: h.Dir, MayBeGone: true, Lookup: func(string) (string, bool) { return "", false }})
	if err != nil {
		return refuse(err)
	}
	if err := checkView(h.View, found); err != nil {
		return refuse(err)
	}
	want := wantedVariables(found)
	if err := client.WriteLine(b.Conn, client.Welcome{Protocol: h.Protocol, Version: supervisor.Version(), PID: os.Getpid(), Want: append(slices.Clone(want.all), pathVariable)}); err != nil {
		return nil // the bridge has gone
	}
	var given client.Values
	if err := client.ReadLine(r, &given); err != nil {
		return nil // the bridge has gone
	}
	d.extendPath(given.Env[pathVariable], h.Dir)
	a := asking{given: valuesOf(want.all, given.Env), ownPath: ownPath(given.Env[pathVariable], h.Dir)}
	served, notes, err := d.useHost(found, want, a, h.Action == client.ActionHold)
	if err != nil {
		return refuse(err)
	}
	defer d.releaseHost(served)
	if _, err := os.Stat(h.Dir); errors.Is(err, fs.ErrNotExist) {
		notes = append(notes, "the directory "+messages.Line(h.Dir, 0)+" is gone, and its servers with it: your agent goes on with the others; "+
			"they return when the directory does, or start the agent in another one")
	}
	if err := client.WriteLine(b.Conn, client.Welcome{Protocol: h.Protocol, Version: supervisor.Version(), PID: os.Getpid(), Ready: true, Notes: notes, View: h.View}); err != nil {
		return nil // the bridge has gone
	}
	if h.Action == client.ActionHold {
		return nil
	}
	if h.Action == client.ActionAttach {
		b.beginServing(false)
		d.serveAttached(b, r, h.Ends)
		return nil
	}
	if !b.beginServing(true) {
		return nil // the bridge looks for the next daemon
	}
	agent := &rootsWatch{Service: served.gateway, roots: &served.parts[0].roots, dir: filepath.Clean(h.Dir)}
	defer agent.end()
	serveAgent(ctx, serve.Options{Service: agent, Began: began, Unread: d.unread}, h.View, r, b)
	return nil
}

// serveAgent answers an agent until it has ended its side and has its answers. If its bridge goes before that, its requests
// are cancelled: their answers have no reader, and a server would work on, and hold its turns, for an agent that was closed.
func serveAgent(ctx context.Context, o serve.Options, view string, r *bufio.Reader, b *bridgeConn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d := &drainReader{r: r, gone: cancel}
	// An agent that goes, in whatever way, is no failure of the daemon.
	_ = serve.Stdio(ctx, o, serve.Principal{Name: audit.User(), View: view}, serve.Path{}, d, b)
	_ = b.SetReadDeadline(time.Unix(1, 0)) // nothing that comes now is read
	d.watching.Wait()
}

// checkView refuses a view that the configuration does not have now.
func checkView(name string, found discover.Configuration) error {
	if name == "" {
		return nil
	}
	if found.Gateway == nil || found.Gateway.Invalid != "" {
		return fmt.Errorf("there is no view %q: the key gateway of the configuration is missing or broken; mcpvisor config check shows what it says",
			messages.Line(name, 80))
	}
	if _, ok := found.Gateway.Views[name]; ok {
		return nil
	}
	text := fmt.Sprintf("there is no view %q in the configuration", messages.Line(name, 80))
	if near := messages.Nearest(name, slices.Collect(maps.Keys(found.Gateway.Views))); near != "" {
		text += fmt.Sprintf("; did you mean %q?", near)
	}
	return errors.New(text)
}

// beganWaiting returns when the agent of a bridge began to wait, whose hello has come now; zero if it did not say.
func beganWaiting(h client.Hello, now time.Time) time.Time {
	const most = time.Hour // longer ones mean the same, and a hostile one must not overflow
	if h.Waited <= 0 {
		return time.Time{}
	}
	return now.Add(-min(time.Duration(min(h.Waited, most.Milliseconds()))*time.Millisecond, most))
}

// serveAttached keeps the servers for a command until that ends its side, and tells it then what becomes of the daemon; at the end of the
// daemon it tells that. ends says that the daemon ends with this command, unless somebody else uses it.
func (d *daemon) serveAttached(b *bridgeConn, r io.Reader, ends bool) {
	_, _ = io.Copy(io.Discard, r) // it says nothing; drainBridges cuts the reading
	_ = b.SetWriteDeadline(time.Now().Add(time.Second))
	d.mu.Lock()
	ending, replaced := d.ending, d.replaced
	last := ends && len(d.bridges) == 1
	for _, h := range d.hosts {
		last = last && !h.held
	}
	d.mu.Unlock()
	if ending || last {
		_ = client.WriteLine(b.Conn, client.Welcome{Protocol: client.Protocol, PID: os.Getpid(), Draining: true, Replaced: replaced})
		d.awaitEnd(b)
		d.end(errUnused)
		return
	}
	_ = client.WriteLine(b.Conn, client.Welcome{Protocol: client.Protocol, PID: os.Getpid(), Ready: true})
}
