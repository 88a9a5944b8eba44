package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/restart"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/gosdk"
	"github.com/mcpvisor/mcpvisor/transports/mcpgo"
)

// demoIntro is what somebody reads who sees mcpvisor for the first time.
const demoIntro = "A demo, with servers built in. clock and dice live in this process, notes is a child process, " +
	"weather speaks HTTP and quotes SSE: all are well. crashes dies every few seconds and is brought back, silent never " +
	"answers, missing is not installed, private wants credentials. All of them are called again and again. " +
	"Ctrl-C ends it."

// demoRun is a run that needs nothing but this program.
func (o *options) demoRun(_ context.Context, f upFlags) (*upRun, error) {
	if len(o.configs)+len(o.servers) > 0 {
		return nil, &exitError{exitUsage, "--demo runs its own servers; leave out --config and --mcp-server"}
	}
	self, err := os.Executable()
	if err != nil {
		return nil, &exitError{exitFailed, "the demo cannot start itself: " + messages.Line(err.Error(), 200)}
	}
	web, err := serveDemo()
	if err != nil {
		return nil, &exitError{exitFailed, "the demo cannot listen on 127.0.0.1: " + messages.Line(err.Error(), 200)}
	}
	project := "."
	if s, _ := loadSetup(o); s != nil {
		project = s.ProjectDir // the other commands look there
	}
	child := func(kind string) messages.Spec {
		args := []string{demoServerCommand, kind}
		return messages.Spec{Command: self, Args: args, StopGrace: messages.Duration(time.Second)}
	}
	silent := child("silent")
	silent.ConnectTimeout = messages.Duration(4 * time.Second)
	return &upRun{
		options: o, flags: f, project: project, intro: demoIntro, noJournal: true, work: demoCalls, close: web.close,
		servers: map[string]messages.Spec{
			"clock":   {Type: messages.SDK},
			"dice":    {Type: messages.SDK},
			"notes":   child("notes"),
			"weather": {Type: messages.HTTP, URL: web.url + "/mcp"},
			"quotes":  {Type: messages.SSE, URL: web.url + "/sse"},
			"crashes": child("crashes"),
			"silent":  silent,
			"missing": {Command: "mcp-server-that-is-not-installed"},
			"private": {Type: messages.HTTP, URL: web.url + "/private"},
		},
		cfg: supervisor.Config{
			InProcess: map[string]func(context.Context, transports.Peer) error{
				"clock": mcpgo.Serve(clockServer()),
				"dice":  gosdk.Serve(diceServer()),
			},
			Restart: demoPolicy(),
		},
	}, nil
}

// demoPolicy is the default one with less patience, because nobody watches a demo for five minutes.
func demoPolicy() restart.Policy {
	p := restart.DefaultPolicy()
	// A server that lives for longer begins at the first delay again, so that crashes is not parked after a minute.
	p.Stable = 3 * time.Second
	p.Quick = 1500 * time.Millisecond
	p.Probe = 30 * time.Second
	return p
}

// demoWeb serves the demo's servers that are reached over HTTP, on a loopback port of its own.
type demoWeb struct {
	url   string
	close func()
}

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
	mux.HandleFunc("/private", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("WWW-Authenticate", `Bearer realm="the demo", error="invalid_token"`)
		http.Error(w, "unauthorized", http.StatusUnauthorized)
	})
	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan struct{})
	go func() {
		defer close(served)
		defer func() { _ = recover() }() // net/http answers the panic of a handler by itself
		_ = web.Serve(listener)          // it ends with Close, and always with an error
	}()
	return &demoWeb{"http://" + listener.Addr().String(), func() {
		_ = web.Close() // what is cut belongs to servers that have been ended
		<-served
	}}, nil
}
