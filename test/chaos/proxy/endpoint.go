package proxy

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
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

// Endpoint lets other programs change the rules: HTTP and JSON, on a loopback address or a Unix socket.
//
//	GET    /rules          the rules in force: [{"rule":{…},"matched":3,"done":1,"active":true}]
//	POST   /rules          adds one: its line (text/plain) or a rule as JSON; gives {"name":"r3"}
//	DELETE /rules/NAME     removes one
//	DELETE /rules          removes all
//
// A TCP address must be a loopback one, and has a password: "PASSWORD@127.0.0.1:7007"; OpenEndpoint draws one if the address
// has none. A client sends it as a bearer token, so that other users of the machine, and web pages, change no rules. The
// endpoint refuses requests that name another host or carry an Origin. A socket can be used only by its owner, and has no
// password.
type Endpoint struct {
	server   *http.Server
	listener net.Listener
	address  string
	done     chan struct{}
}

// OpenEndpoint listens at an address: host:port, or the path of a socket. The caller must Close the endpoint.
func OpenEndpoint(address string, control *fault.Control) (*Endpoint, error) {
	network, password := "tcp", ""
	if isSocket(address) {
		network = "unix"
	} else {
		if password, address = splitPassword(address); password == "" {
			password = rand.Text()
		}
		if err := checkLoopback(address); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen(network, address)
	if err != nil {
		return nil, fmt.Errorf("the control endpoint cannot listen at %s: %w", address, err)
	}
	// Without a password the file's mode is the only protection of the socket.
	if network == "unix" {
		if err := os.Chmod(address, 0o600); err != nil {
			_ = l.Close()
			return nil, fmt.Errorf("the control socket cannot be made private: %w", err)
		}
	}
	e := &Endpoint{listener: l, address: l.Addr().String(), done: make(chan struct{})}
	handler := newRulesHandler(control)
	if network == "tcp" {
		handler = requirePassword(handler, e.address, password)
		e.address = password + "@" + e.address
	}
	e.server = &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	go func() {
		defer close(e.done)
		// net/http recovers the panics of handlers itself.
		defer func() { _ = recover() }()
		// Serve ends with Close, and always returns an error.
		_ = e.server.Serve(l)
	}()
	return e, nil
}

// Address returns the address with the password, in the form that [NewClient] takes.
func (e *Endpoint) Address() string { return e.address }

// Close ends the endpoint and waits for its goroutine.
func (e *Endpoint) Close() {
	_ = e.server.Close()
	<-e.done
}

// isSocket reports whether an address is the path of a socket: only paths hold slashes.
func isSocket(address string) bool { return strings.ContainsAny(address, `/\`) }

// splitPassword splits PASSWORD@HOST:PORT; the password may hold @ and may be missing.
func splitPassword(address string) (password, host string) {
	at := strings.LastIndexByte(address, '@')
	return address[:max(at, 0)], address[at+1:]
}

// requirePassword serves only requests that carry the password and name this host. The check of Host defends against DNS
// rebinding: a web page cannot make a browser send a loopback name for its own host.
func requirePassword(next http.Handler, address, password string) http.Handler {
	_, port, _ := net.SplitHostPort(address)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		host, requestedPort, err := net.SplitHostPort(r.Host)
		ip := net.ParseIP(host)
		if err != nil || requestedPort != port || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			http.Error(w, "the Host header does not name this machine", http.StatusForbidden)
			return
		}
		given, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
		if !bearer || subtle.ConstantTimeCompare([]byte(given), []byte(password)) != 1 {
			http.Error(w, "the password is missing or wrong: write PASSWORD@HOST:PORT, as the proxy printed it", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// checkLoopback returns an error for an address that other machines can reach.
func checkLoopback(address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%q is no address; write 127.0.0.1:0, or the path of a socket", address)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return fmt.Errorf("%s can be reached from other machines; listen at 127.0.0.1 or [::1]", address)
	}
	return nil
}

// newRulesHandler serves the four requests of [Endpoint].
func newRulesHandler(control *fault.Control) http.Handler {
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, status int, v any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		// The client may have gone; the handler cannot report that to anyone.
		_ = json.NewEncoder(w).Encode(v)
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
		// A body that begins with a brace is JSON; any other is one line of the rules' language.
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
	// Browsers send Origin or Sec-Fetch-Site with requests of web pages, programs do not.
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
			http.Error(w, "web pages are refused", http.StatusForbidden)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// Client sends requests to an [Endpoint].
type Client struct {
	base, password string
	http           *http.Client
}

// NewClient makes a client of the endpoint at an address: password@host:port, or the path of a socket. It does not connect yet.
// Each request may take 10 s.
func NewClient(address string) *Client {
	if isSocket(address) {
		return newSocketClient(address)
	}
	password, host := splitPassword(address)
	return &Client{base: "http://" + host, password: password, http: &http.Client{Timeout: 10 * time.Second}}
}

// newSocketClient makes a client that dials a socket, whatever host the URL names.
func newSocketClient(address string) *Client {
	return &Client{base: "http://localhost", http: &http.Client{Timeout: 10 * time.Second,
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", address)
		}}}}
}

// List returns the rules in force.
func (c *Client) List(ctx context.Context) (rules []fault.Status, err error) {
	return rules, c.sendRequest(ctx, http.MethodGet, "/rules", "", &rules)
}

// Add puts the rule of a line in force and returns its name.
func (c *Client) Add(ctx context.Context, line string) (name string, err error) {
	var out struct{ Name string }
	err = c.sendRequest(ctx, http.MethodPost, "/rules", line, &out)
	return out.Name, err
}

// Remove takes a rule out of force.
func (c *Client) Remove(ctx context.Context, name string) error {
	return c.sendRequest(ctx, http.MethodDelete, "/rules/"+url.PathEscape(name), "", nil)
}

// Clear removes every rule.
func (c *Client) Clear(ctx context.Context) error {
	return c.sendRequest(ctx, http.MethodDelete, "/rules", "", nil)
}

// sendRequest sends one request and decodes the JSON of its answer. The error of a refusal is the text that the proxy gave.
func (c *Client) sendRequest(ctx context.Context, method, path, body string, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	if c.password != "" {
		req.Header.Set("Authorization", "Bearer "+c.password)
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
			return fmt.Errorf("the proxy answered %s: %s", resp.Status, strings.TrimSpace(string(raw[:min(len(raw), 200)])))
		}
		return errors.New(refused.Error)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(raw, into)
}
