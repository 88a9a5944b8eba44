// Package oauth signs in to a remote MCP server as the specification's authorization pages say, and keeps the sign-in alive: an
// [Authorizer] is a [transports.Authorizer] for one server.
//
//	a, err := oauth.New(oauth.Config{Server: "github", URL: "https://api.example.com/mcp", Store: store, Locks: locks})
//	…
//	t := web.NewHTTP(web.Config{URL: "https://api.example.com/mcp", Auth: a})
//	…
//	status, err := a.Login(ctx, oauth.Prompt{Open: browser}) // when the server has become needs-auth
//
// # How it fits
//
// Package supervisor/internal/credentials makes one Authorizer for each server whose entry asks for OAuth, and gives it to the
// transport. The transport calls Authorize before every request and Refused after a refusal; the manager calls Login for a
// person, Logout, Status, and Changed for a server that waits for a sign-in. The Authorizer owns the record of the sign-in under
// its key in the store of package auth, and asks the authorization server by HTTP.
//
//	discoverTarget ─> chooseClient ─> confirmBinding ─> Grant.obtainToken ─> the stored sign-in
//	   metadata        registration      a person          token endpoint          │
//	                                                                               v
//	Authorize: the token while it is good; renewToken shortly before its end <─────┘
//
// # Guarantees
//
//   - A person is asked to sign in only if the program wants that: by Login, or by setting Config.Interactive. Otherwise a
//     refusal that no refresh cures is an error of ClassUnauthorized with the server's challenge.
//   - A refresh token is spent once, whatever the number of goroutines and processes that share the store and the locks, and
//     only while the store can be written to; the token that it bought is stored before any request uses it. If storing fails
//     after all, it is used from memory and stored as soon as that is possible.
//   - A refresh that failed gives up nothing that is stored. A token endpoint that cannot answer (no connection, 5xx, 429, a
//     page instead of JSON) is an error of ClassNetwork or ClassThrottled, never a sign-out, and is asked again no sooner than
//     after a growing delay. Only the token endpoint's own refusal, with an OAuth error code, asks for a new sign-in.
//   - One 401 costs at most one refresh. A token that is refused in its first minute is not refreshed, because the
//     authorization server would give out another one of the same kind.
//   - A token goes into the headers of requests to the server it was issued for, and its refresh token to the token endpoint
//     that issued it. No error, status or URL that is shown holds a token, a code or a secret.
//   - Metadata is fetched over https only (http on this machine), without credentials, in bounded size and time. An address
//     inside a private network is refused unless the MCP server itself is in one, link-local ones always.
//
// # Not promised
//
// A process that is killed after the authorization server has rotated the refresh token and before the answer is stored loses
// that answer: no client can know it. That is why a refresh begins while the access token is still good for a while: the next
// start works with the stored access token until its end. Then the authorization server decides whether it accepts the stored
// refresh token once more; if it does not, a new sign-in is needed. End a process by way of [Authorizer.Close], which waits until
// a refresh is stored.
//
// # Libraries
//
// golang.org/x/oauth2 makes PKCE's verifier and every request to a token endpoint; github.com/modelcontextprotocol/go-sdk/oauthex
// has the documents of RFC 9728, RFC 8414 and RFC 7591, the parser of WWW-Authenticate and the registration request. Its handlers
// (auth, auth/extauth; read at v1.8.0, November 2026) are not used, because they keep tokens in memory only, refresh without the
// resource parameter and without a lock, take a metadata document about another resource for a missing one, ignore which PKCE
// methods a server names, prefer a metadata document to registered credentials, and refuse an intranet's authorization server.
package oauth
