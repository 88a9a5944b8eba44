//go:build !nochaos

package main

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/mcpvisor/mcpvisor/test/peers"
)

// TestTheProxyUnderTheInspector puts chaos proxy between a client and a server of other projects:
// testdata/peers/inspector.txtar.
func TestTheProxyUnderTheInspector(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("NOT TESTED: the script ends the proxy with a signal")
	}
	inspector := peers.Inspector(t)
	node, args := peers.NPM(t).Command(peers.Everything)
	everything := args[0]
	server := everythingOverHTTP(t, node, everything)
	testscript.Run(t, testscript.Params{
		Files:               []string{filepath.Join("testdata", "peers", "inspector.txtar")},
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, "INSPECTOR="+inspector.Script, "NODES="+filepath.Dir(inspector.Node), "EVERYTHING="+everything,
				"SERVER=http://"+server+"/mcp", "LISTEN="+freeAddress(t), "CONTROL=word@"+freeAddress(t))
			return setUpScript(env)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": scriptExits, "gone": scriptGone, "await": scriptAwait,
		},
	})
}

// everythingOverHTTP starts server-everything over streamable HTTP, waits until it answers, and returns its address.
func everythingOverHTTP(t *testing.T, node, script string) string {
	t.Helper()
	address := freeAddress(t)
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(node, script, "streamableHttp")
	cmd.Env = append(os.Environ(), "PORT="+port)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if resp, err := http.Get("http://" + address + "/mcp"); err == nil {
			resp.Body.Close()
			return address
		}
		if time.Now().After(deadline) {
			t.Fatal("server-everything does not listen")
		}
	}
}

// freeAddress returns a loopback address at which nothing listens. Another process could take it before the caller does.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
