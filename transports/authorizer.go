package transports

import (
	"context"
	"net/http"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Authorizer gives the requests of one remote server their credentials. It must be safe for concurrent use. Package auth has the
// usual kinds; a program may bring its own. Only what has headers asks it: HTTP, SSE and WebSocket. A child process has its
// environment for credentials, and a stream ([github.com/mcpvisor/mcpvisor/transports/stream]) the function that opens it.
//
// Requests of several callers may share a connection. messages.CallerOf finds the request's caller in ctx, and is empty for what
// belongs to no call (the handshake, lists, pings, streams), unless the connection itself was dialled for a caller. What an
// Authorizer keeps of tokens, it must keep by caller if callers have different ones.
//
// A transport asks it at most once about a refusal of one request, and repeats the request at most once. When several requests of
// one connection are refused together with the same credentials, one of them asks, and the others take over the answer. Credentials
// that the server has answered with 401, and for which the Authorizer had no others, are not sent again on that connection. If the
// Authorizer has other credentials for the connection itself, the error wraps messages.ErrCallerRefused.
type Authorizer interface {
	// Authorize adds credentials to the headers of a request that is about to be sent. h is empty at first; its content
	// afterwards replaces configured headers of the same name. Authorize may block (a refresh). Its error, an [*Error] of class
	// ClassUnauthorized or ClassNetwork, keeps the request from being sent (NotWritten).
	Authorize(ctx context.Context, h http.Header) error
	// Refused handles a refusal (401, or 403 insufficient_scope) of a request that was sent with the headers in used. retry
	// reports that there are other credentials now, so that the same request is worth sending once more. challenge may be nil.
	// The caller gets err in place of the refusal: with class ClassNetwork it says that it is not known yet whether there are
	// others (the token endpoint does not answer).
	Refused(ctx context.Context, status int, challenge *messages.Challenge, used http.Header) (retry bool, err error)
}
