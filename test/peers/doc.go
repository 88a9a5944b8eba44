// Package peers finds MCP servers of other authors, for the end-to-end tests: npm's, at the versions of
// npm/package-lock.json, and the Go SDK's everything-server, at the version of gosdk/go.mod.
//
// For signing in there is an authorization server, npm's oidc-provider at the version of oidc/package-lock.json
// (StartAuthServer). As a client there is the MCP inspector's command line, at the version of
// inspector/package-lock.json (Inspector), and one of both versions of the TypeScript SDK (TypeScriptClient), at those of
// typescript/package-lock.json, which does what a test says. For installing servers by name there is the MCP registry itself, at the version
// of registry/go.mod (StartRegistry), and its documents (RegistryDocuments).
//
// They are installed once into .cache/peers, beside the module's go.mod: `go run ./test/peers/install` does it ahead
// of the tests and says what it found, and the first test that asks does it otherwise. A changed pin installs anew.
// Nothing is downloaded while the versions stay.
//
// Package test/conformance finds the official conformance suite here in the same way, at the versions of its own pins.
//
// A test that asks for what cannot be had (no node, no registry) is skipped with the reason. With CI=true in the
// environment it fails, so that nothing goes untested unnoticed where it counts.
//
// How it fits: tests of test/e2e, test/oauth and cmd ask for a server ([NPM], [Go]), an authorization server, a registry or a client,
// and get a command line or an address; what was started ends with the test. install.go fetches and locks, the other files know one
// peer each.
package peers
