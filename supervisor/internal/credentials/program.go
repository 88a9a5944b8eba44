package credentials

import (
	"bytes"
	"cmp"
	"context"
	"maps"
	"net/http"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// providerTime bounds how long an attempt waits for the program's provider; attempts of a spec with a shorter connect timeout, and those that
// end before, as with the manager, wait no longer than that.
const providerTime = 30 * time.Second

// askProvider asks the program's provider for the Authorizer of a server. The next attempt asks again where it has not returned.
func (c *Credential) askProvider(ctx context.Context, spec *messages.Spec) (transports.Authorizer, error) {
	server := cmp.Or(spec.InstanceOf, c.name)
	if c.owner.AskProgram == nil {
		return c.owner.Provider(server, *spec)
	}
	limit := providerTime
	if own := time.Duration(spec.ConnectTimeout); own > 0 {
		limit = min(limit, own)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	given := make(chan transports.Authorizer, 1) // it has room: a provider that is late can still return
	if err := c.owner.AskProgram(ctx, "Config.AuthProvider", "Config.AuthProvider", c.name, func() error {
		a, err := c.owner.Provider(server, *spec)
		given <- a
		return err
	}); err != nil {
		return nil, err
	}
	return <-given, nil
}

// programStore is the program's own store of sign-ins: a method that does not return, panics or ends its goroutine costs its request alone.
type programStore struct {
	auth.Store
	ask func(ctx context.Context, function, what, server string, f func() error) error
}

// Get implements auth.Store.
func (s programStore) Get(ctx context.Context, key string) ([]byte, error) {
	found := make(chan []byte, 1) // it has room: a store that is late can still return
	if err := s.run(ctx, "Get", func() error {
		secret, err := s.Store.Get(ctx, key)
		found <- secret
		return err
	}); err != nil {
		return nil, err
	}
	return <-found, nil
}

// Put implements auth.Store. The store gets a copy, because the caller may change its own when ctx has ended.
func (s programStore) Put(ctx context.Context, key string, secret []byte) error {
	kept := bytes.Clone(secret)
	return s.run(ctx, "Put", func() error { return s.Store.Put(ctx, key, kept) })
}

// Delete implements auth.Store.
func (s programStore) Delete(ctx context.Context, key string) error {
	return s.run(ctx, "Delete", func() error { return s.Store.Delete(ctx, key) })
}

// Where implements auth.Store. People read it where they wait for nothing.
func (s programStore) Where() string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	place := make(chan string, 1) // it has room: a store that is late can still return
	if err := s.run(ctx, "Where", func() error { place <- s.Store.Where(); return nil }); err != nil {
		return "the program's own store"
	}
	return <-place
}

func (s programStore) run(ctx context.Context, method string, f func() error) error {
	return s.ask(ctx, "Config.AuthStore", method+" of Config.AuthStore", "", f)
}

// authorize asks an Authorizer for the credentials of a request. The program's own gets headers of its own to fill, because it may not
// have returned when the request has ended.
func (c *Credential) authorize(ctx context.Context, a transports.Authorizer, h http.Header) error {
	if !c.IsFromProgram() || c.owner.AskProgram == nil {
		return a.Authorize(ctx, h)
	}
	filled := http.Header{}
	if err := c.owner.AskProgram(ctx, "Config.AuthProvider", "its Authorizer of Config.AuthProvider", c.name, func() error { return a.Authorize(ctx, filled) }); err != nil {
		return err
	}
	maps.Copy(h, filled)
	return nil
}

// reportRefusal tells an Authorizer of a refusal, the program's own in the same way as authorize.
func (c *Credential) reportRefusal(ctx context.Context, a transports.Authorizer, status int, challenge *messages.Challenge, used http.Header) (
	retry bool, err error) {
	if !c.IsFromProgram() || c.owner.AskProgram == nil {
		return a.Refused(ctx, status, challenge, used)
	}
	given := used.Clone()
	var mayRetry bool
	err = c.owner.AskProgram(ctx, "Config.AuthProvider", "its Authorizer of Config.AuthProvider", c.name, func() (err error) {
		mayRetry, err = a.Refused(ctx, status, challenge, given)
		return err
	})
	if err != nil {
		return false, err // mayRetry may still be written
	}
	return mayRetry, nil
}
