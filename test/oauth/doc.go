// Package oauth holds the tests of signing in that need a real authorization server (test/peers.StartAuthServer) and a
// real MCP server behind it: the Go SDK's, with its own bearer-token check.
//
// fixture_test.go starts the two servers and plays the person: it follows the redirects and agrees. Some tests run the command or a
// real browser; processes_test.go kills processes between the steps of a refresh, because a refresh token that is used twice ends a
// sign-in at many authorization servers.
//
// Not promised: other authorization servers. What they do differently is played in transports/auth/oauth.
package oauth
