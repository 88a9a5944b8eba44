package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
)

// asks is an agent in scripts: asks SOCKET TOKEN PATH METHOD [MEMBERS] sends one request of the modern era over a unix socket, and prints
// the status and the answer. It fails unless the answer is a result; with --refused, if it is one.
func asks() {
	wanted := true
	if len(os.Args) > 1 && os.Args[1] == "--refused" {
		wanted, os.Args = false, os.Args[1:]
	}
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "usage: asks SOCKET TOKEN PATH METHOD [MEMBERS]")
		os.Exit(2)
	}
	socket, token, path, method, members := os.Args[1], os.Args[2], os.Args[3], os.Args[4], ""
	if len(os.Args) > 5 {
		members = os.Args[5] + ","
	}
	client := http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}}
	body := `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":{` + members +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, "http://localhost"+path, strings.NewReader(body))
	if err == nil {
		r.Header = http.Header{"Content-Type": {"application/json"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {method},
			"Authorization": {"Bearer " + token}}
		if _, rest, ok := strings.Cut(members, `"name":"`); ok {
			name, _, _ := strings.Cut(rest, `"`)
			r.Header["Mcp-Name"] = []string{name}
		}
		var res *http.Response
		if res, err = client.Do(r); err == nil {
			defer res.Body.Close()
			answer, _ := io.ReadAll(res.Body)
			fmt.Printf("%d %s\n", res.StatusCode, answer)
			if strings.Contains(string(answer), `"result"`) == wanted {
				return
			}
			os.Exit(1) //nolint:gocritic // nothing is lost with the body
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(3)
}
