package session_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// greeter is a server in memory with one tool, which greets. A real program dials a transport of package transports.
func greeter() transports.Transport {
	w := &wire{}
	w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
		answer := func(result string) {
			w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, m.ID, result))
		}
		switch {
		case m.Method == "initialize":
			answer(`{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"greeter","version":"1"}}`)
		case m.Method == "tools/list":
			answer(`{"tools":[{"name":"greet","description":"Says hello.","inputSchema":{"type":"object"}}]}`)
		case m.Name == "greet":
			answer(`{"content":[{"type":"text","text":"hello, Ada"}]}`)
		case m.Method == "tools/call":
			w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"error":{"code":-32602,"message":"Unknown tool"}}`, m.ID))
		}
		return transports.Written, nil
	}
	return w
}

func Example() {
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()

	s, err := session.Dial(ctx, greeter(), session.Config{Era: messages.EraLegacy, ClientName: "example", ClientVersion: "1.0"})
	if err != nil {
		fmt.Println(err)
		return
	}
	info, err := s.Handshake(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("connected to", info.ServerInfo.Name, "with", info.ProtocolVersion)

	list, err := s.ListTools(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, tool := range list.Tools {
		fmt.Println("tool", tool.Name, "-", tool.Description)
	}

	gate := s.OpenGate()
	result, err := gate.Call(ctx, "greet", json.RawMessage(`{"name":"Ada"}`))
	fmt.Println(strings.TrimSpace(string(result.Raw)), err)

	_, err = gate.Call(ctx, "dance", nil)
	fmt.Println(messages.OutcomeOf(err), "-", err)

	gate.Close()
	_, err = gate.Call(ctx, "greet", nil)
	fmt.Println(messages.OutcomeOf(err), "-", err)

	if err := s.Close(ctx); err != nil {
		fmt.Println(err)
	}
	<-s.Released()
	// Output:
	// connected to greeter with 2025-11-25
	// tool greet - Says hello.
	// {"content":[{"type":"text","text":"hello, Ada"}]} <nil>
	// rejected - the server rejected tools/call: Unknown tool (code -32602)
	// not-sent - the server's tools are withdrawn (not sent)
}

// library is a server in memory that offers a resource and a prompt.
func library() transports.Transport {
	w := &wire{}
	w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
		results := map[string]string{
			"initialize":     `{"protocolVersion":"2025-11-25","capabilities":{"resources":{},"prompts":{}}}`,
			"resources/list": `{"resources":[{"uri":"book:1","name":"Dune","size":5}]}`,
			"resources/read": `{"contents":[{"uri":"book:1","text":"A beginning"}]}`,
			"prompts/get":    `{"messages":[{"role":"user","content":{"type":"text","text":"Review Dune."}}]}`,
		}
		if result := results[m.Method]; result != "" {
			w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":%s}`, m.ID, result))
		}
		return transports.Written, nil
	}
	return w
}

func ExampleSession_Resources() {
	ctx, stop := context.WithTimeout(context.Background(), 30*time.Second)
	defer stop()
	s, err := session.Dial(ctx, library(), session.Config{Era: messages.EraLegacy})
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := s.Handshake(ctx); err != nil {
		fmt.Println(err)
		return
	}
	list, err := s.Resources(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range list.Items {
		contents, err := s.ReadResource(ctx, r.URI, nil)
		fmt.Println(r.Name, string(contents), err)
	}
	prompt, err := s.GetPrompt(ctx, "review", map[string]string{"book": "Dune"}, nil)
	fmt.Println(string(prompt), err)
	fmt.Println(s.Subscribe(ctx, "book:1"))
	if err := s.Close(ctx); err != nil {
		fmt.Println(err)
	}
	<-s.Released()
	// Output:
	// Dune {"contents":[{"uri":"book:1","text":"A beginning"}]} <nil>
	// {"messages":[{"role":"user","content":{"type":"text","text":"Review Dune."}}]} <nil>
	// the server does not declare the capability resources.subscribe (not sent)
}
