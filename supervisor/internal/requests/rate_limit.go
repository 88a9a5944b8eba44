package requests

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// elicitBurst questions of one server reach the person at once, and one more every elicitEvery: ten in the first minute
	// and ten more in each minute after it. A question beyond that is refused without being shown.
	//
	// 2025-11-25, Elicitation: "Clients SHOULD implement rate limiting".
	elicitBurst = 10
	elicitEvery = 6 * time.Second
	// sampleBurst and sampleEvery bound the requests for the model: an agent at work asks more often than a person fills
	// forms, and still no more than once a second for long.
	//
	// 2025-11-25, Sampling: "Clients SHOULD implement rate limiting".
	sampleBurst = 20
	sampleEvery = time.Second
)

// rateLimits bounds how often each server may send one kind of request. Safe for concurrent use.
type rateLimits struct {
	burst int
	every time.Duration

	mu sync.Mutex
	// byServer forgets a server that has its whole burst again, so that the map stays small: unless the person has not been told yet
	// how many of its requests were refused.
	byServer map[string]*rateLimit
}

// rateLimit is a token bucket, and the requests that found it empty.
type rateLimit struct {
	*rate.Limiter
	unheard int // how many were refused since the last one that was not
}

// takeRequest takes one request out of a server's limit. ok is false if the server must be refused; otherwise unheard is how many
// were refused since the request before, for the person to see.
func (a *rateLimits) takeRequest(server string, now time.Time) (unheard int, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	// A full bucket is like none, so it need not be kept. The walk is short: only servers that asked lately are in the map.
	for name, l := range a.byServer {
		if name != server && l.unheard == 0 && l.TokensAt(now) >= float64(a.burst) {
			delete(a.byServer, name)
		}
	}
	l := a.byServer[server]
	if l == nil {
		if a.byServer == nil {
			a.byServer = map[string]*rateLimit{}
		}
		l = &rateLimit{Limiter: rate.NewLimiter(rate.Every(a.every), a.burst)}
		a.byServer[server] = l
	}
	if !l.AllowN(now, 1) {
		l.unheard++
		return 0, false
	}
	unheard, l.unheard = l.unheard, 0
	return unheard, true
}
