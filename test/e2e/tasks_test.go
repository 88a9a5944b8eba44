package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/peers"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/mcpgo"
)

const research = "simulate-research-query"

// The everything server has a tool that must be called as a task, and one of its tasks asks the person something. Over
// every transport its caller sees an ordinary result.
func TestAToolThatRequiresATaskIsCalledAsOne(t *testing.T) {
	leavesNothing(t)
	npm := peers.NPM(t)
	command, args := npm.Command(peers.Everything)
	var asked atomic.Int64
	m := start(t, supervisor.Config{
		Servers: map[string]supervisor.Spec{
			"stdio": {Command: command, Args: args},
			"http":  {Type: messages.HTTP, URL: listen(t, everything(npm, "streamableHttp")).url("/mcp")},
			"sse":   {Type: messages.SSE, URL: listen(t, everything(npm, "sse")).url("/sse")},
		},
		Elicit: func(_ context.Context, r supervisor.ElicitRequest) (supervisor.ElicitResult, error) {
			asked.Add(1)
			var form struct {
				Properties struct {
					Interpretation struct {
						OneOf []struct {
							Const string `json:"const"`
						} `json:"oneOf"`
					} `json:"interpretation"`
				} `json:"properties"`
			}
			if err := json.Unmarshal(r.Schema, &form); err != nil || len(form.Properties.Interpretation.OneOf) == 0 {
				return supervisor.ElicitResult{Action: messages.ElicitCancel}, err
			}
			content, err := json.Marshal(object{"interpretation": form.Properties.Interpretation.OneOf[0].Const})
			return supervisor.ElicitResult{Action: messages.ElicitAccept, Content: content}, err
		},
	})
	connected(t, m, "stdio", "http", "sse")
	for _, name := range []string{"stdio", "http", "sse"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, ok := m.Tools().LookupTool(name, research)
			if !ok || e.Tool.TaskSupport != "required" {
				t.Fatalf("the peer is another one: %+v", e)
			}
			res := call(t, m, name, research, object{"topic": "python"})
			if res.IsError || !contains(res.Text(), "Research Report: python", "Stage 4") {
				t.Errorf("a task: %s", res.Raw)
			}
			res = call(t, m, name, research, object{"topic": "python", "ambiguous": true})
			if res.IsError || !contains(res.Text(), "After receiving clarification") {
				t.Errorf("a task that asks: %s", res.Raw)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
			defer cancel()
			_, err := m.CallServerTool(ctx, name, research, object{"topic": "python"})
			var failed *supervisor.Error
			if !errors.As(err, &failed) || !errors.Is(err, context.DeadlineExceeded) ||
				failed.Outcome != messages.OutcomeUnknown || failed.Task == "" {
				t.Errorf("a caller that left: %+v", failed)
			}
		})
	}
	t.Cleanup(func() {
		if n := asked.Load(); n != 3 {
			t.Errorf("the person was asked %d times", n)
		}
	})
}

// A server of mcp-go runs ordinary tools as tasks, and hears when its caller leaves one.
func TestTasksOfAnMCPGoServer(t *testing.T) {
	leavesNothing(t)
	cancelled, release := make(chan string, 1), make(chan struct{})
	defer close(release)
	hooks := &server.Hooks{}
	hooks.AddAfterCancelTask(func(_ context.Context, _ any, r *mcp.CancelTaskRequest, _ *mcp.CancelTaskResult) {
		cancelled <- r.Params.TaskId
	})
	s := server.NewMCPServer("tasks", "1", server.WithTaskCapabilities(true, true, true),
		server.WithToolCapabilities(true), server.WithHooks(hooks))
	add := func(name string, run server.ToolHandlerFunc) {
		tool := mcp.NewTool(name)
		tool.Execution = &mcp.ToolExecution{TaskSupport: mcp.TaskSupportRequired}
		s.AddTool(tool, run)
	}
	add("quick", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultText("done"), nil
	})
	add("fails", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return mcp.NewToolResultError("no luck"), nil
	})
	add("slow", func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		<-release // its context ends with the answer to the request that began the task, so it is of no use here
		return mcp.NewToolResultText("late"), nil
	})
	m := start(t, supervisor.Config{
		// mcp-go 1.2.1 has the tasks of the legacy era only, and demands them in the modern one too (November 2026).
		Servers:   map[string]supervisor.Spec{"go": {Type: messages.SDK, Era: messages.EraLegacy}},
		InProcess: map[string]func(context.Context, transports.Peer) error{"go": mcpgo.Serve(s)},
	})
	connected(t, m, "go")
	says(t, m, "go", "quick", nil, "done")
	if res := call(t, m, "go", "fails", nil); !res.IsError || res.Text() != "no luck" {
		t.Errorf("a task that fails: %s", res.Raw)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	_, err := m.CallServerTool(ctx, "go", "slow", nil)
	var failed *supervisor.Error
	if !errors.As(err, &failed) || !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("a caller that left: %v", err)
	}
	select {
	case id := <-cancelled:
		if id == "" || id != failed.Task {
			t.Errorf("%q was cancelled, and the caller has %q", id, failed.Task)
		}
	case <-time.After(bound):
		t.Error("the server was not told that nobody waits for the task")
	}
}
