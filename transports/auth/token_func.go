package auth

import (
	"context"
	"net/http"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// TokenFunc returns bearer tokens of the embedding program. It is called before every request with refused empty, so that it
// should keep its token. After a 401 it is called with the token that the server refused: if it returns another one, the request
// is sent again. An error keeps the request from being sent; the class of a *transports.Error decides what it means for the
// server, any other error means that a person must sign in.
type TokenFunc func(ctx context.Context, refused string) (token string, err error)

// Tokens makes an Authorizer of a function. A program that needs more than one header, or the server's challenge, implements
// transports.Authorizer itself.
func Tokens(f TokenFunc) transports.Authorizer { return f }

// Authorize implements transports.Authorizer. An empty token sends no header.
func (f TokenFunc) Authorize(ctx context.Context, h http.Header) error {
	token, err := f(ctx, "")
	if err != nil {
		return err
	}
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	return nil
}

// Refused implements transports.Authorizer.
func (f TokenFunc) Refused(ctx context.Context, status int, _ *messages.Challenge, used http.Header) (bool, error) {
	// A request without a token was refused because it had none; the function is asked before the next one anyway.
	refused := strings.TrimPrefix(used.Get("Authorization"), "Bearer ")
	if status != http.StatusUnauthorized || refused == "" {
		return false, nil
	}
	token, err := f(ctx, refused)
	return err == nil && token != refused, err
}
