// Package httpclient makes the HTTP clients that connections to remote servers need: with pools for a thousand callers, with
// keepalives that notice a dead server within [DefaultDeadAfter], and with own certificates.
//
//	cfg, content, err := httpclient.LoadTLS(spec.TLS)   // content changes when a file was renewed
//	client := httpclient.NewTLS(cfg)
//
// # How it fits
//
// Package supervisor/internal/opener makes one client for each origin and configuration, and packages web and websocket send by
// it. Programs that ask other HTTP servers (a registry, an authorization server) use [New] for the same bounds.
//
// # Guarantees
//
// A client has no cookies and no timeout for whole exchanges, because streams last. An error of [LoadTLS] names the file and never
// shows its content.
//
// Not promised: that a proxy between client and server lets a dead server be noticed.
package httpclient
