package transports

import (
	"context"
	"net/http"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Authorizer gives the requests of one remote server their credentials. Safe for concurrent use. Package auth has the
// usual kinds; a program may bring its own.
type Authorizer interface {
	// Authorize adds credentials to the headers of a request that is about to be sent. h is empty at first; what is in it
	// afterwards takes the place of configured headers of the same name. It may block (a refresh); an error, an *Error of
	// class ClassUnauthorized or ClassNetwork, keeps the request from being sent (NotWritten).
	Authorize(ctx context.Context, h http.Header) error
	// Refused is told that the server refused (401, or 403 insufficient_scope) a request that had been sent with the
	// headers used. again reports that there are other credentials now, so that the same request is worth sending once
	// more. challenge may be nil. An error of class ClassNetwork says that nobody knows yet whether there are (the token
	// endpoint does not answer), and is what the caller sees then.
	Refused(ctx context.Context, status int, challenge *messages.Challenge, used http.Header) (again bool, err error)
}
