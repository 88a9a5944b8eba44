package web

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"
)

// RequireToken answers 401 with a Bearer challenge, unless the request carries the token.
func RequireToken(token string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer "+token {
			next.ServeHTTP(w, r)
			return
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="fixture", error="invalid_token", `+
			`resource_metadata="http://`+r.Host+`/.well-known/oauth-protected-resource", scope="read write"`)
		http.Error(w, "who are you?", http.StatusUnauthorized)
	})
}

// RequireKey answers 401 without a challenge, unless the header has the value.
func RequireKey(header, value string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(header) != value {
			http.Error(w, "key missing", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// RevokeAfter lets n requests through and answers 401 with a challenge ever after.
func RevokeAfter(n int64, next http.Handler) http.Handler {
	return onceCounted(n, next, RequireToken("no token is good enough", nil))
}

// Forbidden answers 403 that asks for a wider scope.
func Forbidden(scope string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="insufficient_scope", scope=%q`, scope))
		http.Error(w, "not for you", http.StatusForbidden)
	})
}

// Status answers everything with a status and a plain text body.
func Status(code int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, http.StatusText(code), code)
	})
}

// FailingJSON answers 500 with a body that is JSON and no JSON-RPC.
func FailingJSON() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, `{"status":500,"detail":"upstream is on fire"}`)
	})
}

// Throttled answers the first n requests with 429 and Retry-After in whole seconds.
func Throttled(n int64, after time.Duration, next http.Handler) http.Handler {
	return onceCounted(n, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Retry-After", strconv.Itoa(int(after/time.Second)))
		http.Error(w, "slow down", http.StatusTooManyRequests)
	}), next)
}

// FailFirst answers the first n requests with a status.
func FailFirst(n int64, code int, next http.Handler) http.Handler {
	return onceCounted(n, Status(code), next)
}

// onceCounted serves n requests by first and all others by then.
func onceCounted(n int64, first, then http.Handler) http.Handler {
	var seen atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if seen.Add(1) <= n {
			first.ServeHTTP(w, r)
			return
		}
		then.ServeHTTP(w, r)
	})
}

// BlackHole accepts every request and never answers.
func BlackHole() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only a request that was read to its end has its context canceled
		<-r.Context().Done()
	})
}

// Silent opens an event stream on every request and never sends an event on it.
func Silent() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
}

// Drip answers everything with 200 and a JSON body that comes one byte every so often and never ends.
func Drip(every time.Duration) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":"`)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, "x"); err != nil {
				return
			}
			_ = http.NewResponseController(w).Flush()
			time.Sleep(every)
		}
	})
}

// WrongType answers everything with 200 and a web page, as a captive portal or a wrong path does.
func WrongType() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "<!doctype html><title>Welcome</title><h1>Please log in</h1>")
	})
}

// NotJSON answers everything with 200, the type of JSON, and something else.
func NotJSON() http.Handler { return fixedBody("application/json", "upstream timed out") }

// Huge answers everything with a JSON body of size bytes.
func Huge(size int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{"pad":"`)
		block := make([]byte, 64<<10)
		for i := range block {
			block[i] = 'x'
		}
		for sent := 0; sent < size; sent += len(block) {
			if _, err := w.Write(block[:min(len(block), size-sent)]); err != nil {
				return
			}
		}
		_, _ = io.WriteString(w, `"}}`)
	})
}

// OtherID answers everything with a well-formed result for an id that its client never used.
func OtherID() http.Handler {
	return fixedBody("application/json", `{"jsonrpc":"2.0","id":987654321,"result":{}}`)
}

// fixedBody answers every request with 200 and the same bytes.
func fixedBody(contentType, text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, text)
	})
}

// Redirect sends everything to the same path of another server, with 301, 302, 303, 307 or 308.
func Redirect(to string, code int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, to+r.URL.RequestURI(), code)
	})
}

// CutAfter aborts each response, streams included, a while after its request came: the client sees a reset.
func CutAfter(d time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		// A deadline in the past breaks the connection under a handler that is still writing or waiting.
		cut := time.AfterFunc(d, func() {
			_ = rc.SetReadDeadline(time.Unix(1, 0))
			_ = rc.SetWriteDeadline(time.Unix(1, 0))
		})
		defer cut.Stop()
		next.ServeHTTP(w, r)
		if r.Context().Err() != nil {
			panic(http.ErrAbortHandler)
		}
	})
}

// SlowDelete holds every DELETE for a while, as proxies do with the end of a session.
func SlowDelete(d time.Duration, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodDelete {
			select {
			case <-time.After(d):
			case <-r.Context().Done():
			}
		}
		next.ServeHTTP(w, r)
	})
}

// NoStream answers 405 to every GET, as a server without a stream of its own must.
func NoStream(next http.Handler) http.Handler { return rejectMethod(http.MethodGet, next) }

// OnlySSE serves HTTP+SSE on one path: GET opens the stream, and POST to the same path is answered with 405, which is
// how a client finds out that the server is that old.
func OnlySSE(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/sse" && r.Method != http.MethodGet {
			http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// rejectMethod answers 405 to one method, and passes all others on.
func rejectMethod(method string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == method {
			http.Error(w, "Method Not Allowed", http.StatusMethodNotAllowed)
			return
		}
		next.ServeHTTP(w, r)
	})
}
