// Package proxy is an MCP proxy that breaks things on purpose. It stands between any agent and any server, over standard
// input and output (Stdio) or over HTTP (HTTP), and understands the JSON-RPC that goes through it.
//
//	control, err := fault.New(seed)
//	control = control.At(fault.Stdio)
//	exit, err := (&proxy.Stdio{Command: "npx", Args: […], In: os.Stdin, Out: os.Stdout, Shared: proxy.Shared{Control: control}}).Run(ctx)
//
// Rules are those of package transports/fault: given to the control, read from a file that is watched (Watch), or changed
// from outside by a small endpoint (Endpoint, Client).
//
// Guarantees:
//
//   - Passive unless told. Without a rule that matches, what arrives is what was sent, byte for byte and in order, in both
//     directions: odd white space, unknown members, the spelling of numbers, invalid UTF-8, empty lines, CRLF and a last
//     line without an end. While there is no rule at all, bytes are passed on as they come; with rules, a line (or an
//     event) is passed on when it is complete.
//   - Over stdio the end of input, the exit code, the signal that the server dies of, SIGINT and SIGTERM and standard
//     error pass as well. The server runs in a process group of its own, of which nothing is left when Run returns.
//   - Over HTTP methods, paths, queries, headers, status, bodies and trailers pass; events pass as they come. The headers
//     that belong to a single hop do not, and Host names the server.
//   - What a fault does is told: in the log, and in the summary at the end. No header is ever written to the log, and no
//     body unless that is asked for.
//   - The same conversation with the same seed and rules breaks in the same way.
//
// Changed over HTTP even when passive: the endpoint that a server of 2024-11-05 announces, if it is an absolute URL, is
// made one of the proxy's, or the agent would go round it.
//
// Not promised: that a compressed body is understood (while there are rules, the server is asked not to compress); that
// lines of more than 64 MiB, or events, are seen by rules: they pass.
package proxy
