// Package web has the fixtures of package servers over HTTP: a good MCP server, built with mcp-go, and handlers around it or
// instead of it that do what servers, proxies and networks were seen doing.
//
// Each is an http.Handler, safe for concurrent use; Serve puts one on a loopback port for the time of a test:
//
//	url := web.Serve(t, web.RequireToken("let-me-in", web.Good()))
//	// url + "/mcp" is streamable HTTP, url + "/sse" the older HTTP+SSE
//
// Handlers that never answer wait for the end of their request and no longer.
//
// # How it fits
//
// good.go has the server that behaves, faults.go the handlers around it or in its place; a fault that lets requests through takes
// the next handler, so that faults can be nested. Tests of transports, supervisor and cmd use them. The package calls nothing of
// mcpvisor.
//
// Not promised: that a fault is hit. A handler that acts after n requests counts all requests, also those of another client.
package web
