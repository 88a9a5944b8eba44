package control

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// The conversation on the socket is HTTP/1.1 with JSON bodies. A failure has status 400 or more and a failure as its
// body. Requests with GET change nothing, and all others do: authorizePeers relies on that for peers that may only
// read.
const (
	pathHello       = "/v1/hello"
	pathStatus      = "/v1/status"
	pathTools       = "/v1/tools"
	pathCall        = "/v1/call"
	pathHistory     = "/v1/history"
	pathPermissions = "/v1/permissions"
	pathReload      = "/v1/reload"
	pathReconnect   = "/v1/reconnect"
	pathEnable      = "/v1/enable"
	pathDisable     = "/v1/disable"
	pathResources   = "/v1/resources"
	pathTemplates   = "/v1/templates"
	pathPrompts     = "/v1/prompts"
	pathComplete    = "/v1/complete"
	pathPing        = "/v1/ping"
	pathLogs        = "/v1/logs"

	// The answers on these paths, and on pathCall, are streams: see frame.
	pathRead   = "/v1/read"
	pathFill   = "/v1/prompt"
	pathEvents = "/v1/events"
	pathWatch  = "/v1/watch"
	// pathAnswer takes the answer to a question of a stream.
	pathAnswer = "/v1/answer"

	// headerTimeout bounds the request, in milliseconds, so that the answering side reports what was not done in
	// time.
	headerTimeout = "Mcpvisor-Timeout"
	// maxArgs bounds the arguments of a call in bytes.
	maxArgs = 64 << 20
)

// newHandler returns the handler for all paths: it recovers from panics, authorizes the peer, and calls the backend.
func newHandler(b Backend, cfg serveConfig) http.Handler {
	mux := http.NewServeMux()
	// answer adds a route whose answer is one JSON value, command one that answers with an empty object.
	answer := func(pattern string, f func(ctx context.Context, r *http.Request) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			ctx, cancel := requestContext(r)
			defer cancel()
			v, err := f(ctx, r)
			if err != nil {
				writeError(w, err)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(v) // an error means that the peer has gone
		})
	}
	answer("GET "+pathHello, func(ctx context.Context, _ *http.Request) (any, error) { return b.Hello(ctx) })
	answer("GET "+pathStatus, func(ctx context.Context, r *http.Request) (any, error) {
		// All parameters are in the query, so that a GET needs no body.
		q := StatusQuery{Servers: r.URL.Query()["server"], Retries: r.URL.Query().Get("retries") == "true"}
		if wait := r.URL.Query().Get("wait"); wait != "" {
			d, err := time.ParseDuration(wait)
			if err != nil {
				return nil, malformedError("wait", wait)
			}
			q.Wait = d
		}
		return b.Status(ctx, q)
	})
	answer("GET "+pathTools, func(ctx context.Context, r *http.Request) (any, error) {
		return b.Tools(ctx, r.URL.Query()["server"]...)
	})
	answer("GET "+pathHistory, func(ctx context.Context, r *http.Request) (any, error) {
		return b.History(ctx, r.URL.Query().Get("server"))
	})
	answer("GET "+pathPermissions, func(ctx context.Context, _ *http.Request) (any, error) { return b.Permissions(ctx) })
	answer("POST "+pathReload, func(ctx context.Context, _ *http.Request) (any, error) { return b.Reload(ctx) })
	command := func(path string, f func(ctx context.Context, r *http.Request, server string) error) {
		answer("POST "+path, func(ctx context.Context, r *http.Request) (any, error) {
			// A command has no result, only an error.
			return struct{}{}, f(ctx, r, r.URL.Query().Get("server"))
		})
	}
	command(pathReconnect, func(ctx context.Context, _ *http.Request, server string) error {
		return b.Reconnect(ctx, server)
	})
	command(pathEnable, func(ctx context.Context, _ *http.Request, server string) error { return b.Enable(ctx, server) })
	command(pathDisable, func(ctx context.Context, r *http.Request, server string) error {
		return b.Disable(ctx, server, r.URL.Query().Get("disconnect") == "true")
	})
	addJSONRoutes(b, answer)
	addStreamRoutes(mux, b)
	// The order matters: a panic of the authorization is answered as well, and no route runs before it.
	return recoverPanics(authorizePeers(mux, cfg.onRefused))
}

// requestContext returns the request's context, which ends when the peer goes away, bounded by the time that the peer
// gives.
func requestContext(r *http.Request) (context.Context, context.CancelFunc) {
	// A header that cannot be read counts as none: the peer then ends the request by going away.
	if ms, err := strconv.ParseInt(r.Header.Get(headerTimeout), 10, 64); err == nil {
		return context.WithTimeout(r.Context(), time.Duration(ms)*time.Millisecond)
	}
	return context.WithCancel(r.Context())
}

// writeError answers with a failure. Every failure has status 422: its class is in the body.
func writeError(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusUnprocessableEntity)
	_ = json.NewEncoder(w).Encode(failureOf(err)) // an error means that the peer has gone
}

// malformedError returns the error of a value on the socket that cannot be read.
func malformedError(name, value string) error {
	return &messages.Error{Op: "control", Class: messages.ClassInvalid,
		Text: fmt.Sprintf("%s %q on the control socket is malformed", name, messages.Line(value, 40))}
}

// recoverPanics answers a panic with an error, so that the asking side has one to show. The outcome is unknown,
// because the call may have run.
func recoverPanics(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil {
				writeError(w, panicError(p))
			}
		}()
		h.ServeHTTP(w, r)
	})
}
