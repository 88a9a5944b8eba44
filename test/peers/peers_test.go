package peers_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os/exec"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/test/peers"
)

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18",` +
	`"capabilities":{},"clientInfo":{"name":"mcpvisor-test","version":"1"}}}` + "\n"

func TestEachServerOfNPMAnswersInitialize(t *testing.T) {
	npm := peers.NPM(t)
	for _, c := range []struct {
		server string
		args   []string
	}{
		{peers.Everything, nil},
		{peers.Filesystem, []string{t.TempDir()}},
		{peers.Memory, nil},
		{peers.SequentialThinking, nil},
		{peers.Postgres, []string{"postgresql://127.0.0.1:1/none"}},
	} {
		t.Run(c.server, func(t *testing.T) {
			command, args := npm.Command(c.server, c.args...)
			answersInitialize(t, exec.CommandContext(t.Context(), command, args...))
		})
	}
	t.Run("npx", func(t *testing.T) {
		command, args := npm.NPX(peers.Everything)
		answersInitialize(t, exec.CommandContext(t.Context(), command, args...))
	})
	t.Run("bin", func(t *testing.T) {
		answersInitialize(t, exec.CommandContext(t.Context(), npm.Bin(peers.Memory)))
	})
}

func TestTheGoSDKsServerAnswersInitialize(t *testing.T) {
	answersInitialize(t, exec.CommandContext(t.Context(), peers.Go(t)))
}

// answersInitialize starts a server, asks it to initialize, and ends it by closing its input.
func answersInitialize(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// npm's servers are not seen to end with their input in every version, and a test leaves nothing behind.
	kill := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer kill.Stop()
	if _, err := io.WriteString(in, initialize); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Errorf("%v: no answer: %v", cmd.Args, err)
	}
	var a struct {
		Result struct{ ServerInfo struct{ Name string } }
	}
	if err := json.Unmarshal(line, &a); err != nil || a.Result.ServerInfo.Name == "" {
		t.Errorf("%v answers %s, %v", cmd.Args, line, err)
	}
	in.Close()
	time.AfterFunc(2*time.Second, func() { _ = cmd.Process.Kill() })
	_ = cmd.Wait() // how it ends is not what this test asks
}
