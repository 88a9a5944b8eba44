package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	mcpserver "github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// ownServer is the variable that makes the test program a server: "asking", of the Go SDK, or "tasks", of mcp-go.
const ownServer = "AGENTS_SERVER"

// serveOwn serves on lines, until they end.
func serveOwn(which string) int {
	var err error
	if which == "tasks" {
		err = mcpserver.ServeStdio(taskServer())
	} else {
		err = askingServer().Run(context.Background(), &mcp.StdioTransport{})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// noted is the URI of the resource of the asking server.
const noted = "note://one"

// askingServer asks, tells and waits for what its tools are called for.
func askingServer() *mcp.Server {
	accept := func(context.Context, string) error { return nil }
	s := mcp.NewServer(&mcp.Implementation{Name: "asking", Version: "1"}, &mcp.ServerOptions{
		CompletionHandler: func(_ context.Context, r *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{r.Params.Argument.Value + "-completed"}}}, nil
		},
		SubscribeHandler:   func(ctx context.Context, r *mcp.SubscribeRequest) error { return accept(ctx, r.Params.URI) },
		UnsubscribeHandler: func(ctx context.Context, r *mcp.UnsubscribeRequest) error { return accept(ctx, r.Params.URI) },
	})
	var cancelled atomic.Int32
	add := func(name string, do func(ctx context.Context, r *mcp.CallToolRequest) (string, error)) {
		s.AddTool(&mcp.Tool{Name: name, InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			text, err := do(ctx, r)
			if err != nil {
				return nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
		})
	}
	add("ask", func(ctx context.Context, r *mcp.CallToolRequest) (string, error) {
		res, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "who are you?",
			RequestedSchema: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`)})
		if err != nil {
			return "", err
		}
		return fmt.Sprint(res.Action, " ", res.Content["name"]), nil
	})
	add("sample", func(ctx context.Context, r *mcp.CallToolRequest) (string, error) {
		res, err := r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 10,
			Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "who are you?"}}}})
		if err != nil {
			return "", err
		}
		return res.Content.(*mcp.TextContent).Text, nil
	})
	add("steps", func(ctx context.Context, r *mcp.CallToolRequest) (string, error) {
		for i := range 3 {
			if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: 3}); err != nil {
				return "", err
			}
		}
		return "done", nil
	})
	add("wait", func(ctx context.Context, r *mcp.CallToolRequest) (string, error) {
		_ = r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1})
		<-ctx.Done()
		cancelled.Add(1)
		return "", ctx.Err()
	})
	add("cancelled", func(context.Context, *mcp.CallToolRequest) (string, error) { return fmt.Sprint(cancelled.Load()), nil })
	add("log", func(ctx context.Context, r *mcp.CallToolRequest) (string, error) {
		for _, level := range []mcp.LoggingLevel{"debug", "error"} {
			if err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Logger: "asking", Data: "said at " + level}); err != nil {
				return "", err
			}
		}
		return "said", nil
	})
	add("touch", func(ctx context.Context, _ *mcp.CallToolRequest) (string, error) {
		return "touched", s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: noted})
	})
	s.AddResource(&mcp.Resource{URI: noted, Name: "one"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: noted, Text: "what is noted"}}}, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "who"}}}, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "hello " + r.Params.Arguments["who"]}}}}, nil
	})
	return s
}

// taskServer has a tool that runs as a task until another one releases it. It does not look at its context, which this SDK ends with the request.
func taskServer() *mcpserver.MCPServer {
	s := mcpserver.NewMCPServer("tasks", "1", mcpserver.WithTaskCapabilities(true, true, true), mcpserver.WithToolCapabilities(true))
	released := make(chan struct{})
	s.AddTaskTool(mcpgo.NewTool("work", mcpgo.WithTaskSupport(mcpgo.TaskSupportOptional)), func(_ context.Context, r mcpgo.CallToolRequest) (*mcpgo.CreateTaskResult, error) {
		select {
		case <-released:
		case <-time.After(patience):
		}
		return &mcpgo.CreateTaskResult{Content: []mcpgo.Content{mcpgo.NewTextContent("worked for " + r.GetString("who", ""))}}, nil
	})
	var once sync.Once
	s.AddTool(mcpgo.NewTool("release"), func(context.Context, mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
		once.Do(func() { close(released) })
		return mcpgo.NewToolResultText("released"), nil
	})
	return s
}
