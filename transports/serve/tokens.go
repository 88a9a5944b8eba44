package serve

import (
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
)

// Tokens are the bearer tokens of an endpoint, each of a principal. Set replaces them while the endpoint serves.
type Tokens struct{ known atomic.Pointer[[]knownToken] }

type knownToken struct {
	// sum stands for the token, so that all comparisons take the same time, whatever the lengths.
	sum       [sha256.Size]byte
	principal Principal
}

// NewTokens returns tokens, by their texts.
func NewTokens(principals map[string]Principal) *Tokens {
	t := &Tokens{}
	t.Set(principals)
	return t
}

// Set replaces the tokens. Sessions stay with their principals; those of a token that is gone cannot be reached any more.
func (t *Tokens) Set(principals map[string]Principal) {
	known := make([]knownToken, 0, len(principals))
	for token, p := range principals {
		known = append(known, knownToken{sha256.Sum256([]byte(token)), p})
	}
	t.known.Store(&known)
}

// errUnauthorized says the same of a missing and of a wrong token.
var errUnauthorized = errors.New("the request has no bearer token of this endpoint")

// Authenticate is for Options: it returns the principal of a request's token. Every known token is compared, in constant time.
func (t *Tokens) Authenticate(r *http.Request) (p Principal, err error) {
	values := r.Header["Authorization"]
	if len(values) != 1 {
		return p, errUnauthorized
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		return p, errUnauthorized
	}
	sum, found := sha256.Sum256([]byte(token)), 0
	for _, k := range *t.known.Load() {
		if subtle.ConstantTimeCompare(sum[:], k.sum[:]) == 1 {
			p, found = k.principal, 1
		}
	}
	if found == 0 {
		return p, errUnauthorized
	}
	return p, nil
}
