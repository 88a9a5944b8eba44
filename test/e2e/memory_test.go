package e2e_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/servers"
)

const listerRole = "e2e-lister"

// The lister is a server whose tools have so many KiB together, in pages of ten tools of 100 KiB.
func init() {
	roles[listerRole] = func(args []string) int {
		size, err := strconv.Atoi(args[0])
		if err != nil {
			return 1
		}
		in := bufio.NewReader(os.Stdin)
		for {
			line, err := in.ReadBytes('\n')
			if err != nil {
				return 0
			}
			var r struct {
				ID     json.RawMessage
				Method string
				Params struct{ Cursor string }
			}
			if json.Unmarshal(line, &r) != nil || len(r.ID) == 0 {
				continue
			}
			result := `{"content":[{"type":"text","text":"here"}]}`
			switch r.Method {
			case "initialize":
				result = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"l","version":"1"}}`
			case "tools/list":
				result = listerPage(size, r.Params.Cursor)
			}
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", r.ID, result)
		}
	}
}

func listerPage(size int, cursor string) string {
	first, _ := strconv.Atoi(cursor) // of the first page: 0
	var tools []string
	for i := first; i < first+10 && i*100 < size; i++ {
		tools = append(tools, fmt.Sprintf(`{"name":"t%d","inputSchema":{"type":"object"},"description":%q}`, i, strings.Repeat("x", 100<<10)))
	}
	next := ""
	if (first+10)*100 < size {
		next = fmt.Sprintf(`,"nextCursor":"%d"`, first+10)
	}
	return `{"tools":[` + strings.Join(tools, ",") + `]` + next + `}`
}

// TestManyLargeServers: of children with large lists beyond a small budget the greediest is refused, and the small ones connect and
// work, in whatever order they come. An answer that there is no room for ends its call, and the server goes on.
func TestManyLargeServers(t *testing.T) {
	checkLeaks(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	good, args := servers.Command("good")
	cfg := supervisor.Config{MemoryBudget: 12 << 20, Servers: map[string]supervisor.Spec{"good": {Command: good, Args: args}}}
	for name, size := range map[string]int{"greedy": 40_000, "big": 2_000, "small-1": 100, "small-2": 100, "small-3": 100} {
		cfg.Servers[name] = supervisor.Spec{Command: self, Args: []string{listerRole, strconv.Itoa(size)}, Era: messages.EraLegacy}
	}
	m, err := supervisor.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close(t.Context())
	if err := m.Settled(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name := range cfg.Servers {
		st, err := m.ServerStatus(name)
		if err != nil {
			t.Fatal(err)
		}
		if name == "greedy" {
			if st.Status == messages.Connected || st.Class != messages.ClassExhausted || !strings.Contains(st.Error, "memory for all servers") {
				t.Errorf("the greediest is %s: %s: %s", st.Status, st.Class, st.Error)
			}
			continue
		}
		tool := "t0"
		if name == "good" {
			tool = "echo"
		}
		if _, err := m.CallServerTool(t.Context(), name, tool, json.RawMessage(`{"text":"x"}`)); err != nil || st.Status != messages.Connected {
			t.Errorf("%s is %s: %s; %v", name, st.Status, st.Error, err)
		}
	}
	if st, _ := m.ServerStatus("big"); st.Memory < 2_000<<10 {
		t.Errorf("%d bytes are held for a list of 2 MB", st.Memory)
	}
	_, err = m.CallServerTool(t.Context(), "good", "bigresult", json.RawMessage(`{"size":11000000}`))
	if !errors.Is(err, supervisor.ErrMemory) || messages.ClassOf(err) != messages.ClassExhausted ||
		!strings.Contains(err.Error(), "the tool ran, but its answer was discarded") {
		t.Errorf("an answer of 11 MB: %v", err)
	}
	if out, err := m.CallServerTool(t.Context(), "good", "bigresult", json.RawMessage(`{"size":900000}`)); err != nil || len(out.Raw) < 900_000 {
		t.Errorf("an answer of 0.9 MB: %v", err)
	}
}
