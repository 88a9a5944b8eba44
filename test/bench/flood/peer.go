package flood

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/mcpvisor/mcpvisor/test/servers"
	fixtures "github.com/mcpvisor/mcpvisor/test/servers/web"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// marker is the first argument of a process that floods.
const marker = "mcpvisor-flood"

// floodMessages maps each kind of flood to its message of some 100 bytes.
var floodMessages = map[string]string{
	"progress": `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1,"message":"on"}}`,
	"logs":     `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"all is well here, and there"}}`,
	"changes":  `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
	"answers":  `{"jsonrpc":"2.0","id":99999999,"result":{"content":[{"type":"text","text":"nobody asked for this"}]}}`,
	"requests": `{"jsonrpc":"2.0","id":"x","method":"unheard/of","params":{"and":"some more bytes of parameters"}}`,
	"pings":    `{"jsonrpc":"2.0","id":"x","method":"ping"}`,
	// stderr floods with lines of standard error, and computing writes nothing but keeps a processor busy.
	"stderr":    "",
	"computing": "",
}

// Main turns the process into a flooding server if args ask for one, and exits with its input. A program that measures must
// call it first.
func Main(args []string) bool {
	if len(args) != 3 || args[0] != marker {
		return false
	}
	switch kind := args[2]; args[1] {
	case "stdio":
		floodStdio(kind)
	case "http":
		servers.ServeChild(httptest.NewServer(floodHTTP(kind)).URL)
	}
	os.Exit(0)
	return true
}

// calm is what a server answers that floods: it has one tool. The flood begins only after the handshake, so that the manager
// connects.
var calm = &servers.Fixed{
	Name: "flood", Capabilities: `{"tools":{"listChanged":true},"logging":{}}`, Tools: `{"tools":[{"name":"none","inputSchema":{"type":"object"}}]}`,
}

// floodStdio answers requests, and floods standard output or error after the handshake. It exits when its input ends.
func floodStdio(kind string) {
	go func() {
		in := bufio.NewReader(os.Stdin)
		for flooding := false; ; {
			line, err := in.ReadBytes('\n')
			if err != nil {
				os.Exit(0)
			}
			if r := calm.Answer(line); r != nil {
				// One Write of a small message to a pipe is atomic, so the flood does not tear it.
				_, _ = os.Stdout.Write(append(r, '\n'))
			}
			if !flooding && bytes.Contains(line, []byte("notifications/initialized")) {
				flooding = true
				go writeFlood(kind)
			}
		}
	}()
	select {}
}

// writeFlood floods until writing fails.
func writeFlood(kind string) {
	out, line := os.Stdout, floodMessages[kind]
	switch kind {
	case "computing":
		for x := uint64(1); x != 0; x = x*6364136223846793005 + 1442695040888963407 | 1 { //nolint:revive // it never ends
		}
	case "stderr":
		out, line = os.Stderr, "something is wrong, and nobody needs to know what it is exactly"
	}
	// At most 4096 bytes, which a pipe takes in one piece.
	block := bytes.Repeat([]byte(line+"\n"), 4096/(len(line)+1))
	for {
		if _, err := out.Write(block); err != nil {
			return
		}
	}
}

// floodHTTP floods the GET stream, for messages that belong to no request.
func floodHTTP(kind string) http.Handler {
	answers := fixtures.Answers(calm.Answer)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			answers.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		block := bytes.Repeat([]byte("data: "+floodMessages[kind]+"\n\n"), 64)
		for {
			if _, err := w.Write(block); err != nil {
				return
			}
		}
	})
}

// floodInProcess floods from a goroutine of this program.
func floodInProcess(kind string) func(context.Context, inprocess.Peer) error {
	return func(ctx context.Context, peer inprocess.Peer) error {
		for {
			body, err := peer.Read(ctx)
			if err != nil {
				return nil //nolint:nilerr // the connection has ended
			}
			if answer := calm.Answer(body); answer != nil {
				if err := peer.Write(ctx, answer); err != nil {
					return err
				}
			}
			if bytes.Contains(body, []byte("notifications/initialized")) {
				go func() {
					for peer.Write(ctx, []byte(floodMessages[kind])) == nil {
					}
				}()
			}
		}
	}
}
