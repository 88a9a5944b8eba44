package auth

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

// HelperConfig describes a helper: a command that prints headers as JSON.
type HelperConfig struct {
	// Program is the command: its Command, Args, complete Env, Dir and Guard count. ShellCommand makes one of a command line.
	Program stdio.Config
	// Limit bounds each run, 0 for 10 s. At its end the helper is killed with every process that it has started.
	Limit time.Duration
}

// Helper runs a command that prints a JSON object of strings, which become headers of every request: {"X-Key": "…"}. The command
// runs at the first request, and again when the server answers 401; its standard input is closed. Its output and its standard
// error are in no log and no error.
//
// Several requests that find no headers wait for one run.
func Helper(cfg HelperConfig) transports.Authorizer {
	return &helper{cfg: cfg, description: "the helper " + quoteLine(programName(cfg.Program)), runLock: make(chan struct{}, 1)}
}

// helper is the Authorizer of one command.
type helper struct {
	cfg         HelperConfig
	description string
	runLock     chan struct{} // held by the goroutine that runs it
	// inUse points to the headers of the last run, nil before the first. The map is never written to.
	inUse atomic.Pointer[map[string]string]
}

// Authorize implements transports.Authorizer.
func (p *helper) Authorize(ctx context.Context, h http.Header) error {
	// The map is only read here; runHelper replaces it as a whole.
	headers := p.inUse.Load()
	if headers == nil {
		if err := p.runHelper(ctx, nil); err != nil {
			return err
		}
		headers = p.inUse.Load()
	}
	for name, value := range *headers {
		h.Set(name, value)
	}
	return nil
}

// Refused implements transports.Authorizer. It runs the helper again, unless that has happened since the request was sent.
func (p *helper) Refused(ctx context.Context, status int, _ *messages.Challenge, used http.Header) (bool, error) {
	if status != http.StatusUnauthorized {
		return false, nil
	}
	before := p.inUse.Load()
	if before == nil || !matchesHeaders(*before, used) {
		return true, nil // another goroutine has run it since
	}
	if err := p.runHelper(ctx, before); err != nil {
		return false, err
	}
	return !maps.Equal(*before, *p.inUse.Load()), nil
}

// runHelper runs the helper, unless another goroutine has replaced the headers that were in use before. Comparing pointers
// suffices, because every run makes a new map.
func (p *helper) runHelper(ctx context.Context, before *map[string]string) error {
	select {
	case p.runLock <- struct{}{}:
	case <-ctx.Done():
		return contextError(ctx, "running "+p.description)
	}
	defer func() { <-p.runLock }()
	if p.inUse.Load() != before {
		return nil
	}
	out, err := runCommand(ctx, p.cfg.Program, p.cfg.Limit, p.description)
	if err != nil {
		return err
	}
	headers, err := p.parseHeaders(out)
	if err != nil {
		return err
	}
	p.inUse.Store(&headers)
	return nil
}

// parseHeaders reads a helper's output. Its errors name headers and never values: output that is not JSON may be a bare token.
func (p *helper) parseHeaders(out []byte) (map[string]string, error) {
	// Values are read as any, so that a number gets an error of its own.
	var given map[string]any
	if err := json.Unmarshal(out, &given); err != nil || given == nil {
		return nil, noCredentialsError(p.description+" did not print a JSON object", `it must print headers like {"X-Key": "…"}`, nil)
	}
	headers := make(map[string]string, len(given))
	for name, v := range given {
		value, ok := v.(string)
		switch {
		case !httpguts.ValidHeaderFieldName(name):
			return nil, noCredentialsError(p.description+" printed a header whose name HTTP does not allow", "", nil)
		case !ok:
			return nil, noCredentialsError(p.description+" printed a header that is no text: "+quoteLine(name), "put its value in quotes", nil)
		case !httpguts.ValidHeaderFieldValue(value):
			return nil, noCredentialsError(p.description+" printed a header that HTTP does not allow: "+quoteLine(name),
				"look for line breaks and stray characters in it", nil)
		}
		headers[http.CanonicalHeaderKey(name)] = value
	}
	return headers, nil
}

// matchesHeaders reports whether a request was sent with these headers. The transport may have left some of them out.
func matchesHeaders(headers map[string]string, used http.Header) bool {
	// Headers that the transport has left out are not in used, so that the loop goes over used.
	for name := range used {
		if value, ok := headers[name]; !ok || value != used.Get(name) {
			return false
		}
	}
	return true
}
