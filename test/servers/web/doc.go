// Package web is the zoo of package servers over HTTP: a good MCP server, built with mcp-go, and handlers around it or
// instead of it that do what servers, proxies and networks were seen doing.
//
// Each is an http.Handler, safe for concurrent use; Serve puts one on a loopback port for the time of a test:
//
//	url := web.Serve(t, web.RequireToken("let-me-in", web.Good()))
//	// url + "/mcp" is streamable HTTP, url + "/sse" the older HTTP+SSE
//
// Handlers that never answer wait for the end of their request and no longer.
package web
