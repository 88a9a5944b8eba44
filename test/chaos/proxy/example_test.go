//go:build unix

package proxy_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mcpvisor/mcpvisor/test/chaos/proxy"
	"github.com/mcpvisor/mcpvisor/transports/fault"
)

// A server that only echoes, and a rule that swallows one of two calls.
func ExampleStdio() {
	control, err := fault.New(1)
	if err != nil {
		fmt.Println(err)
		return
	}
	control = control.At(fault.Stdio)
	rule, err := fault.Parse("black-hole on=tools/call tool=lost direction=server")
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := control.Add(rule); err != nil {
		fmt.Println(err)
		return
	}
	p := &proxy.Stdio{
		Command: "cat", Out: struct{ io.Writer }{os.Stdout}, Shared: proxy.Shared{Control: control},
		In: strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"lost"}}` + "\n" +
			`{"jsonrpc":"2.0", "id":2, "method":"tools/call", "params":{"name":"kept"}}` + "\n"),
	}
	exit, err := p.Run(context.Background())
	fmt.Println(exit.Code, err)
	// Output:
	// {"jsonrpc":"2.0", "id":2, "method":"tools/call", "params":{"name":"kept"}}
	// 0 <nil>
}
