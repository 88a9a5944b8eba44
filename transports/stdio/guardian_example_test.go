//go:build unix

package stdio_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"

	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

// A program that starts servers starts itself again as its guardian. The first lines of its main are
//
//	if len(os.Args) == 2 && os.Args[1] == "guardian" {
//		if err := stdio.RunGuardian(os.Stdin); err != nil {
//			os.Exit(1)
//		}
//		return
//	}
//
// and what follows is the rest of it. From here on no way to end this program leaves a server behind.
func ExampleStartGuardian() {
	exe, err := os.Executable()
	if err != nil {
		fmt.Println(err)
		return
	}
	guardian, err := stdio.StartGuardian(exec.Command(exe, "guardian"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer guardian.Close() // after the connections

	env, _ := stdio.ChildEnv(os.Environ(), nil, false)
	server := stdio.New(stdio.Config{
		Command: "cat", // gives every message back
		Env:     env,
		Guard:   guardian,
	})
	ctx := context.Background()
	heard := make(printer, 1)
	conn, err := server.Dial(ctx, heard)
	if err != nil {
		fmt.Println(err)
		return
	}
	body := []byte(`{"jsonrpc":"2.0","method":"hello"}`)
	delivery, err := conn.Send(ctx, transports.Message{Method: "hello", Body: body})
	fmt.Println(delivery, err)
	fmt.Println(<-heard)
	fmt.Println(conn.Close(ctx))
	fmt.Println(conn.Info().Exit)
	// Output:
	// written <nil>
	// {"jsonrpc":"2.0","method":"hello"}
	// <nil>
	// exit status 0
}

// printer is a sink that passes messages on.
type printer chan string

func (p printer) Message(body []byte)             { p <- string(body) }
func (p printer) Oversized([]byte, []byte, int64) {}
func (p printer) Noise([]byte)                    {}
func (p printer) Down(error)                      {}
