package demo

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/guardian"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
)

// NewServer returns the hidden command that serves one kind of server on standard input and output.
func NewServer(o *cli.Options) *cobra.Command {
	return &cobra.Command{
		Use:    guardian.DemoServerCommand + " KIND",
		Short:  "Be a server of the demo",
		Hidden: true,
		Args:   cli.OneServer,
		RunE: func(_ *cobra.Command, args []string) error {
			switch args[0] {
			case "notes":
				return server.ServeStdio(notesServer())
			case "crashes":
				// The server dies after 2.5 to 5.5 seconds, with a reason on standard error that "why" can show.
				lifetime := 2500*time.Millisecond + rand.N(3*time.Second)
				time.AfterFunc(lifetime, func() {
					fmt.Fprintf(o.Err, "fatal: the demo's luck ran out after %s\n", lifetime.Round(time.Second))
					os.Exit(1)
				})
				return server.ServeStdio(workServer())
			case "silent":
				// The server "silent" reads and never answers, until its input is closed.
				_, err := io.Copy(io.Discard, o.In)
				return err
			}
			return exit.With(exit.Usage, "the demo has no server "+messages.Line(args[0], 40))
		},
	}
}

// request is a call of a tool, as mcp-go hands it over.
type request = mcp.CallToolRequest

// answerFunc answers a call with a text; its error becomes a tool error, not an error of the protocol.
type answerFunc = func(context.Context, request) (string, error)

// addTextTool adds a tool to a server whose answer is one text.
func addTextTool(s *server.MCPServer, name, description string, answer answerFunc, options ...mcp.ToolOption) {
	options = append(options, mcp.WithDescription(description))
	s.AddTool(mcp.NewTool(name, options...), func(ctx context.Context, r request) (*mcp.CallToolResult, error) {
		text, err := answer(ctx, r)
		if err != nil {
			return mcp.NewToolResultError(err.Error()), nil
		}
		return mcp.NewToolResultText(text), nil
	})
}

// demoServer returns an empty mcp-go server that turns panics of its tools into errors.
func demoServer(name string) *server.MCPServer {
	return server.NewMCPServer("demo-"+name, supervisor.Version(), server.WithToolCapabilities(true),
		server.WithRecovery())
}

// clockServer returns a server written with mcp-go, which runs in this process.
func clockServer() *server.MCPServer {
	s := demoServer("clock")
	addTextTool(s, "now", "Tells the time", func(context.Context, request) (string, error) {
		return time.Now().Format(time.RFC3339), nil
	})
	addTextTool(s, "wait", "Answers after a moment, at most a second", func(ctx context.Context, r request) (string, error) {
		d := time.Duration(min(max(r.GetInt("milliseconds", 100), 0), 1000)) * time.Millisecond
		select {
		case <-time.After(d):
			return "waited " + d.String(), nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}, mcp.WithNumber("milliseconds", mcp.Description("how long")))
	return s
}

// diceServer returns a server written with the official SDK, which runs in this process.
func diceServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "demo-dice", Version: supervisor.Version()}, nil)
	type roll struct {
		Sides int `json:"sides,omitempty" jsonschema:"how many sides the die has; 6 by default"`
	}
	sdk.AddTool(s, &sdk.Tool{Name: "roll", Description: "Rolls a die"},
		func(_ context.Context, _ *sdk.CallToolRequest, in roll) (*sdk.CallToolResult, any, error) {
			if in.Sides <= 0 {
				in.Sides = 6
			}
			text := fmt.Sprint(1 + rand.IntN(in.Sides))
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil, nil
		})
	return s
}

// notesServer returns a server written with mcp-go, which runs as a child process and loses its notes when it ends.
func notesServer() *server.MCPServer {
	s := demoServer("notes")
	// mu guards notes: mcp-go calls tools concurrently.
	var mu sync.Mutex
	var notes []string
	addTextTool(s, "add", "Adds a note; the last hundred are kept", func(_ context.Context, r request) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		notes = append(notes, r.GetString("text", ""))
		notes = notes[max(0, len(notes)-100):]
		return fmt.Sprintf("%d notes", len(notes)), nil
	}, mcp.WithString("text", mcp.Required(), mcp.Description("the note")))
	addTextTool(s, "list", "Lists the notes", func(context.Context, request) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		return strings.Join(notes, "\n"), nil
	})
	addTextTool(s, "clear", "Forgets the notes", func(context.Context, request) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		notes = nil
		return "no notes", nil
	})
	return s
}

// weatherServer returns a server written with mcp-go, which is reached over streamable HTTP.
func weatherServer() *server.MCPServer {
	s := demoServer("weather")
	addTextTool(s, "forecast", "Invents the weather of a city", func(_ context.Context, r request) (string, error) {
		sky := []string{"sun", "clouds", "rain", "snow", "fog"}[rand.IntN(5)]
		return fmt.Sprintf("%s in %s, %d °C", sky, r.GetString("city", "your town"), rand.IntN(40)-10), nil
	}, mcp.WithString("city", mcp.Description("where")))
	return s
}

// quoteServer returns a server written with mcp-go, which is reached over SSE.
func quoteServer() *server.MCPServer {
	s := demoServer("quotes")
	quotes := []string{"Let it crash.", "Everything fails, all the time.", "Hope is not a strategy."}
	addTextTool(s, "quote", "Says something about failure", func(context.Context, request) (string, error) {
		return quotes[rand.IntN(len(quotes))], nil
	})
	return s
}

// workServer returns a server whose tool takes 0.4 to 0.8 seconds, so that some calls are running when its process ends and
// have an unknown outcome.
func workServer() *server.MCPServer {
	s := demoServer("crashes")
	addTextTool(s, "work", "Works for a moment", func(ctx context.Context, _ request) (string, error) {
		select {
		case <-time.After(400*time.Millisecond + rand.N(400*time.Millisecond)):
			return "done", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	return s
}
