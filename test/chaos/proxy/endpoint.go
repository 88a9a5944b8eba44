package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// Endpoint lets rules be changed from outside: HTTP and JSON, on a loopback address or a Unix socket.
//
//	GET    /rules          the rules in force: [{"rule":{…},"matched":3,"done":1,"active":true}]
//	POST   /rules          adds one: its line (text/plain) or a rule as JSON; gives {"name":"r3"}
//	DELETE /rules/NAME     removes one
//	DELETE /rules          removes all
//
// It has no password. A TCP address must be a loopback one, and requests of web pages are refused (they carry an Origin).
type Endpoint struct {
	server   *http.Server
	listener net.Listener
	address  string
	done     chan struct{}
}

// OpenEndpoint listens at an address: host:port, or the path of a socket.
func OpenEndpoint(address string, control *fault.Control) (*Endpoint, error) {
	network := "tcp"
	if isSocket(address) {
		network = "unix"
	} else if err := loopback(address); err != nil {
		return nil, err
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return nil, fmt.Errorf("the control endpoint cannot listen at %s: %w", address, err)
	}
	if network == "unix" {
		if err := os.Chmod(address, 0o600); err != nil {
			_ = l.Close()
			return nil, fmt.Errorf("the control socket cannot be made private: %w", err)
		}
	}
	e := &Endpoint{listener: l, address: l.Addr().String(), done: make(chan struct{})}
	e.server = &http.Server{Handler: rulesHandler(control), ReadHeaderTimeout: 5 * time.Second}
	go func() {
		defer close(e.done)
		defer func() { _ = recover() }() // net/http answers the panic of a handler by itself
		_ = e.server.Serve(l)            // it ends with Close, and always with an error
	}()
	return e, nil
}

// Address is where it listens.
func (e *Endpoint) Address() string { return e.address }

// Close ends it.
func (e *Endpoint) Close() {
	_ = e.server.Close()
	<-e.done
}

func isSocket(address string) bool { return strings.ContainsAny(address, `/\`) }

// loopback refuses an address that other machines can reach.
func loopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is no address; write 127.0.0.1:0, or the path of a socket", address)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%s can be reached from other machines; listen at 127.0.0.1 or [::1]", address)
	}
	return nil
}

func rulesHandler(control *fault.Control) http.Handler {
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v) // nobody is there to be told
	}
	refuse := func(w http.ResponseWriter, err error) {
		answer(w, http.StatusBadRequest, map[string]string{"error": err.Error()})
	}
	mux.HandleFunc("GET /rules", func(w http.ResponseWriter, _ *http.Request) {
		list := control.List()
		if list == nil {
			list = []fault.Status{}
		}
		answer(w, http.StatusOK, list)
	})
	mux.HandleFunc("POST /rules", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 64<<10))
		if err != nil {
			refuse(w, err)
			return
		}
		rule, err := fault.Parse(string(body))
		if text := bytes.TrimSpace(body); len(text) > 0 && text[0] == '{' {
			rule = fault.Rule{}
			d := json.NewDecoder(bytes.NewReader(text))
			d.DisallowUnknownFields()
			err = d.Decode(&rule)
		}
		if err == nil {
			var name string
			if name, err = control.Add(rule); err == nil {
				answer(w, http.StatusCreated, map[string]string{"name": name})
				return
			}
		}
		refuse(w, err)
	})
	mux.HandleFunc("DELETE /rules/{name}", func(w http.ResponseWriter, r *http.Request) {
		if err := control.Remove(r.PathValue("name")); err != nil {
			refuse(w, err)
			return
		}
		answer(w, http.StatusOK, map[string]bool{"removed": true})
	})
	mux.HandleFunc("DELETE /rules", func(w http.ResponseWriter, _ *http.Request) {
		control.Clear()
		answer(w, http.StatusOK, map[string]bool{"removed": true})
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
			http.Error(w, "web pages are refused", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// Client talks to an Endpoint.
type Client struct {
	base string
	http *http.Client
}

// NewClient reaches the endpoint at an address: host:port, or the path of a socket.
func NewClient(address string) *Client {
	c := &Client{base: "http://" + address, http: &http.Client{Timeout: 10 * time.Second}}
	if isSocket(address) {
		c.base = "http://localhost"
		c.http.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", address)
		}}
	}
	return c
}

// List is the rules in force.
func (c *Client) List(ctx context.Context) (rules []fault.Status, err error) {
	return rules, c.do(ctx, http.MethodGet, "/rules", "", &rules)
}

// Add puts the rule of a line in force and gives its name.
func (c *Client) Add(ctx context.Context, line string) (name string, err error) {
	var out struct{ Name string }
	err = c.do(ctx, http.MethodPost, "/rules", line, &out)
	return out.Name, err
}

// Remove takes a rule out of force, Clear all of them.
func (c *Client) Remove(ctx context.Context, name string) error {
	return c.do(ctx, http.MethodDelete, "/rules/"+url.PathEscape(name), "", nil)
}

// Clear removes every rule.
func (c *Client) Clear(ctx context.Context) error {
	return c.do(ctx, http.MethodDelete, "/rules", "", nil)
}

func (c *Client) do(ctx context.Context, method, path, body string, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("no proxy answers at that address: %w", err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	var refused struct{ Error string }
	if resp.StatusCode >= 400 {
		if json.Unmarshal(raw, &refused) != nil || refused.Error == "" {
			return fmt.Errorf("the proxy answered %s", resp.Status)
		}
		return errors.New(refused.Error)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(raw, into)
}
