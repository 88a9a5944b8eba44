// Package proxy is an MCP proxy that breaks things on purpose. It stands between any agent and any server, over standard input
// and output ([Stdio]) or over HTTP ([HTTP]), and understands the JSON-RPC that goes through it.
//
//	control, err := fault.New(seed)
//	control = control.At(fault.Stdio)
//	exit, err := (&proxy.Stdio{Command: "npx", Args: […], In: os.Stdin, Out: os.Stdout, Shared: proxy.Shared{Control: control}}).Run(ctx)
//
// # How it fits
//
// The command "mcpvisor chaos proxy" runs a proxy; tests embed one. The decisions are those of package transports/fault: its
// Control holds the rules, and its Flow says for each message what happens to it (a Disposition), and by the clock which events
// happen (Tick). This package owns the bytes: it cuts streams into lines and events, and performs the decisions.
//
//	agent --> lineSplitter, exchange --> fault.Flow --> lineWriter, http.Transport --> server
//	agent <-- lineWriter, ResponseWriter <-- fault.Flow <-- lineSplitter, eventSplitter <-- server
//
// Rules come from the control's caller, from a file that [Watch] reads again when it changes, or from outside by a small
// endpoint ([Endpoint], [Client]).
//
// # Guarantees
//
//   - Without a rule that matches, what arrives is what was sent, byte for byte and in order, in both directions: odd white
//     space, unknown members, the spelling of numbers, invalid UTF-8, empty lines, CRLF and a last line without an end. While
//     there is no rule at all, the proxy passes bytes on as they come; with rules, it passes on a line (or an event) when it is
//     complete.
//   - Over stdio the end of input, the exit code, the signal that the server dies of, SIGINT and SIGTERM and standard error
//     pass as well. The server runs in a process group of its own, of which no process is left when Run returns.
//   - Over HTTP methods, paths, queries, headers, status, bodies and trailers pass; events pass as they come. The headers that
//     belong to a single hop do not, and Host names the server.
//   - The log and the summary at the end report every fault that was done. The log never holds a header, and holds bodies only
//     if the caller asks for them.
//   - The same conversation with the same seed and rules breaks in the same way.
//
// Over HTTP the proxy changes one thing even without rules: if a server of 2024-11-05 announces its endpoint as an absolute
// URL, the proxy replaces it by one of its own, because the agent would bypass the proxy otherwise.
//
// # Not promised
//
// Compressed bodies are not understood; while there are rules, the proxy asks the server not to compress. Rules do not see
// lines or events of more than 64 MiB: these pass.
package proxy
