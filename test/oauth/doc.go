// Package oauth holds the tests of signing in that need a real authorization server (test/peers.StartAuthServer) and a
// real MCP server behind it: the Go SDK's, with its own bearer-token check.
package oauth
