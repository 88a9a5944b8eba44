// Package demo holds the servers of "mcpvisor up --demo", good ones and bad ones, and the calls that are made to them.
//
// How it fits: [New] makes the demo and package up runs it as it runs the servers of a project. The servers that are child
// processes are this program, started with the hidden command of [NewServer].
//
// Guarantees: it needs no configuration, no network and no other program, and everything of it ends with the run.
//
// Not promised: the names of the servers, and what they answer.
package demo

import (
	"context"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/guardian"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/up"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
	"github.com/mcpvisor/mcpvisor/transports/gosdk"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
	"github.com/mcpvisor/mcpvisor/transports/mcpgo"
)

// intro is the text above the table of up --demo, for a person who sees mcpvisor for the first time.
const intro = "A demo, with servers built in. clock and dice live in this process, notes is a child process, " +
	"weather speaks HTTP and quotes SSE: all are well. crashes dies every few seconds and is brought back, silent never " +
	"answers, missing is not installed, private wants credentials. All of them are called again and again. " +
	"Ctrl-C ends it."

// New starts the web servers of the demo and returns it, for "up". Nothing but this program is needed: child processes are this
// program started again, and web servers listen on loopback.
func New() (up.Demo, error) {
	self, err := os.Executable()
	if err != nil {
		return up.Demo{}, exit.With(exit.Failed, "the demo cannot start itself: "+messages.Line(err.Error(), 200))
	}
	web, err := serveDemo()
	if err != nil {
		return up.Demo{}, exit.With(exit.Failed, "the demo cannot listen on 127.0.0.1: "+messages.Line(err.Error(), 200))
	}
	child := func(kind string) messages.Spec {
		args := []string{guardian.DemoServerCommand, kind}
		return messages.Spec{Command: self, Args: args, StopGrace: messages.Duration(time.Second)}
	}
	silent := child("silent")
	// The default connect timeout would be too long to wait for in a demo.
	silent.ConnectTimeout = messages.Duration(4 * time.Second)
	return up.Demo{
		Intro: intro, Work: demoCalls, Close: web.close,
		Servers: map[string]messages.Spec{
			"clock":   {Type: messages.SDK},
			"dice":    {Type: messages.SDK},
			"notes":   child("notes"),
			"weather": {Type: messages.HTTP, URL: web.url + "/mcp"},
			"quotes":  {Type: messages.SSE, URL: web.url + "/sse"},
			"crashes": child("crashes"),
			"silent":  silent,
			// This program must not exist on any machine.
			"missing": {Command: "mcp-server-that-is-not-installed"},
			"private": {Type: messages.HTTP, URL: web.url + "/private"},
		},
		Config: supervisor.Config{
			InProcess: map[string]func(context.Context, inprocess.Peer) error{
				"clock": mcpgo.Serve(clockServer()),
				"dice":  gosdk.Serve(diceServer()),
			},
			Restart: demoPolicy(),
		},
	}, nil
}

// demoPolicy returns the default restart policy with shorter times, because a demo is watched for a minute, not for five.
func demoPolicy() restart.Policy {
	p := restart.DefaultPolicy()
	// A server that lives longer than Stable begins at the first delay again, so that "crashes" is not parked after a minute.
	p.Stable = 3 * time.Second
	p.Quick = 1500 * time.Millisecond
	p.Probe = 30 * time.Second
	return p
}

// demoWeb serves the demo's servers that are reached over HTTP, on a loopback port of its own.
type demoWeb struct {
	// url is the address without a path.
	url string
	// close ends the listener and all connections, and waits for the serving goroutine.
	close func()
}

// serveDemo starts the web servers of the demo. The port is chosen by the system, so that two demos can run.
func serveDemo() (*demoWeb, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	sse := server.NewSSEServer(quoteServer())
	mux := http.NewServeMux()
	mux.Handle("/mcp", server.NewStreamableHTTPServer(weatherServer(), server.WithStateful(true)))
	mux.Handle("/sse", sse)
	mux.Handle("/message", sse)
	// The server "private" refuses every request, to show what a server that needs credentials looks like.
	mux.HandleFunc("/private", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="the demo", error="invalid_token"`)
		http.Error(w, "unauthorized", http.StatusUnauthorized)
	})
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		defer func() { _ = recover() }() // net/http recovers panics of handlers; this one is for its own
		_ = web.Serve(listener)          // it ends with Close, and always with an error
	}()
	return &demoWeb{"http://" + listener.Addr().String(), func() {
		_ = web.Close() // connections that are cut belong to servers that have ended
		<-served
	}}, nil
}
