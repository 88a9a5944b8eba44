package serve

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
)

// Tokens are the bearer tokens of an endpoint, each of a principal. Set replaces them while the endpoint serves.
type Tokens struct {
	// turn is held by Set, one at a time.
	turn  sync.Mutex
	known atomic.Pointer[[]knownToken]
	// persons are the principals that have a token, by their names; turn guards them.
	persons map[string]person
}

// person ends with the last token of a principal.
type person struct {
	known  context.Context //nolint:containedctx // it is that of the principal's tokens
	forget context.CancelFunc
}

type knownToken struct {
	// sum stands for the token, so that all comparisons take the same time, whatever the lengths.
	sum       [sha256.Size]byte
	principal Principal
}

// NewTokens returns tokens, by their texts.
func NewTokens(principals map[string]Principal) *Tokens {
	t := &Tokens{}
	t.known.Store(&[]knownToken{})
	t.Set(principals)
	return t
}

// Set replaces the tokens. What was begun with a token that is gone, or leads to another principal or view now, ends: sessions,
// their requests, and streams. What was begun with one that stays is not disturbed.
func (t *Tokens) Set(principals map[string]Principal) {
	t.turn.Lock()
	defer t.turn.Unlock()
	before := *t.known.Load()
	persons := make(map[string]person, len(t.persons))
	for _, p := range principals {
		one, known := t.persons[p.Name]
		if !known {
			one, known = persons[p.Name]
		}
		if !known {
			one.known, one.forget = context.WithCancel(context.Background())
		}
		persons[p.Name] = one
	}
	kept := make(map[*credential]bool, len(before))
	known := make([]knownToken, 0, len(principals))
	for text, p := range principals {
		token := knownToken{sha256.Sum256([]byte(text)), p}
		for _, old := range before {
			if old.sum == token.sum && old.principal.Name == p.Name && old.principal.View == p.View {
				token.principal.credential = old.principal.credential
				kept[old.principal.credential] = true
			}
		}
		if token.principal.credential == nil {
			token.principal.credential = persons[p.Name].newCredential()
		}
		known = append(known, token)
	}
	t.known.Store(&known)
	for _, old := range before {
		if !kept[old.principal.credential] {
			old.principal.credential.forget()
		}
	}
	for name, p := range t.persons {
		if _, known := persons[name]; !known {
			p.forget()
		}
	}
	t.persons = persons
}

// newCredential returns that of one token of the principal.
func (p person) newCredential() *credential {
	c := newCredential()
	c.person = p.known
	return c
}

func newCredential() *credential {
	known, forget := context.WithCancel(context.Background())
	return &credential{known: known, forget: forget}
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
