package flood

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/mcpvisor/mcpvisor/transports"
)

// marker is the first argument of a process that floods.
const marker = "mcpvisor-flood"

// floodMessages are what a flood consists of: one message each, of some 100 bytes.
var floodMessages = map[string]string{
	"progress":  `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1,"message":"on"}}`,
	"logs":      `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"all is well here, and there"}}`,
	"changes":   `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`,
	"answers":   `{"jsonrpc":"2.0","id":99999999,"result":{"content":[{"type":"text","text":"nobody asked for this"}]}}`,
	"requests":  `{"jsonrpc":"2.0","id":"x","method":"unheard/of","params":{"and":"some more bytes of parameters"}}`,
	"pings":     `{"jsonrpc":"2.0","id":"x","method":"ping"}`,
	"stderr":    "", // lines of standard error
	"computing": "", // nothing is written: the process computes
}

// Main becomes a flooding process if args ask for one, and ends it then. A program that measures begins with it.
func Main(args []string) bool {
	if len(args) != 3 || args[0] != marker {
		return false
	}
	switch kind := args[2]; args[1] {
	case "stdio":
		floodStdio(kind)
	case "http":
		s := httptest.NewServer(floodHTTP(kind))
		fmt.Println(s.URL)
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends with whoever started it
	}
	os.Exit(0)
	return true
}

// answerFor is what a server with one tool answers, nil for nothing.
func answerFor(request []byte) []byte {
	var r struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(request, &r) != nil || len(r.ID) == 0 {
		return nil
	}
	result := `{}`
	switch r.Method {
	case "initialize":
		result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"logging":{}},"serverInfo":{"name":"flood","version":"1"}}`
	case "tools/list":
		result = `{"tools":[{"name":"none","inputSchema":{"type":"object"}}]}`
	case "server/discover":
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, r.ID)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, result)
}

// floodStdio floods standard output or error. It ends with its input.
func floodStdio(kind string) {
	go func() {
		in := bufio.NewReader(os.Stdin)
		for flooding := false; ; {
			line, err := in.ReadBytes('\n')
			if err != nil {
				os.Exit(0)
			}
			if r := answerFor(line); r != nil {
				_, _ = os.Stdout.Write(append(r, '\n')) // one write: it is not torn by the flood
			}
			if !flooding && bytes.Contains(line, []byte("notifications/initialized")) {
				flooding = true
				go writeFlood(kind)
			}
		}
	}()
	select {}
}

func writeFlood(kind string) {
	out, line := os.Stdout, floodMessages[kind]
	switch kind {
	case "computing":
		for x := uint64(1); x != 0; x = x*6364136223846793005 + 1442695040888963407 | 1 { //nolint:revive // it never ends
		}
	case "stderr":
		out, line = os.Stderr, "something is wrong, and nobody needs to know what it is exactly"
	}
	block := bytes.Repeat([]byte(line+"\n"), 4096/(len(line)+1)) // at most what a pipe takes in one piece
	for {
		if _, err := out.Write(block); err != nil {
			return
		}
	}
}

// floodHTTP floods the stream for what a server sends unasked.
func floodHTTP(kind string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Type", "text/event-stream")
			block := bytes.Repeat([]byte("data: "+floodMessages[kind]+"\n\n"), 64)
			for {
				if _, err := w.Write(block); err != nil {
					return
				}
			}
		}
		body, _ := io.ReadAll(io.LimitReader(r.Body, 1<<20))
		if answer := answerFor(body); answer != nil {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(answer)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	})
}

// floodInProcess floods from a goroutine of this program.
func floodInProcess(kind string) func(context.Context, transports.Peer) error {
	return func(ctx context.Context, peer transports.Peer) error {
		for {
			body, err := peer.Read(ctx)
			if err != nil {
				return nil //nolint:nilerr // the connection has ended
			}
			if answer := answerFor(body); answer != nil {
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
