// Package loop is what a program does that connects to its servers one after the other with the client of the official Go
// SDK, and keeps what it gets: README compares mcpvisor with it. Nothing but Go is needed:
//
//	make loop
//
// The five servers are the fixtures of test/servers under other names. One never answers, one cannot start, and one that
// worked is killed by Play.
//
// How it fits: command run prints what [Play] does, and a test plays it with a shorter bound and compares the lines with those that
// README quotes. The package calls nothing of mcpvisor; only command run with -program starts it, for the second half of the story.
package loop

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/test/servers"
)

// Server is one of the five.
type Server struct {
	Name string
	// Fixture is the kind with its parameters.
	Fixture []string
}

// Servers are the five in the order of the loop. The silent one stands before two others.
func Servers() []Server {
	return []Server{
		{"files", []string{"good", "tools=9", "name=files-server"}},
		{"memory", []string{"good", "tools=4", "name=memory-server"}},
		{"slow", []string{"silent"}},
		{"broken", []string{"exits-at-once", "text=no such table: users", "code=1"}},
		{"everything", []string{"good", "tools=8", "name=everything-server"}},
	}
}

// Play connects to the servers in turns, with one bound for all of them, and writes a line for each. It kills memory once it is
// connected, and calls it twice after that. The program that calls it begins with servers.Main.
func Play(bound time.Duration, out io.Writer) {
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	client := mcp.NewClient(&mcp.Implementation{Name: "loop", Version: "1"}, nil)
	began := time.Now()
	for _, s := range Servers() {
		command, args := servers.Command(s.Fixture[0], s.Fixture[1:]...)
		cmd := exec.Command(command, args...)
		session, err := client.Connect(ctx, &mcp.CommandTransport{Command: cmd}, nil)
		fmt.Fprintf(out, "%5.1fs %s: ", time.Since(began).Seconds(), s.Name)
		switch {
		case err != nil && s.Name == "broken":
			fmt.Fprintln(out, last(err)+"     the servers after the silent one get no time")
		case err != nil:
			fmt.Fprintln(out, last(err))
		case s.Name == "memory":
			fmt.Fprintln(out, "connected                     … and is killed here:")
			callKilled(ctx, cmd, session, out)
		default:
			fmt.Fprintln(out, "connected")
		}
		if err == nil {
			defer session.Close() // how it ends is of no interest
		}
	}
}

// callKilled ends a server and calls it. The second call shows that the client does not start it again.
func callKilled(ctx context.Context, cmd *exec.Cmd, session *mcp.ClientSession, out io.Writer) {
	_ = cmd.Process.Kill() // it lives
	_ = session.Wait()     // until the client has seen it
	call := func() string {
		_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "x"}})
		if err == nil {
			return "it is answered"
		}
		return last(err)
	}
	first, second := call(), call()
	if first == second {
		first += "         … for ever"
	}
	fmt.Fprintln(out, "       call:", first)
}

// last is the end of an error, which names the reason: what stands before it is what the library was doing.
func last(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return context.DeadlineExceeded.Error()
	}
	return err.Error()[strings.LastIndex(err.Error(), "\n")+1:]
}
