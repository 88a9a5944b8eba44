package e2e_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/test/peers"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/test/servers"
	"github.com/mcpvisor/mcpvisor/transports/gosdk"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// sdkServer is a server of the Go SDK with so many tools, each answering its own name.
func sdkServer(tools int, options *mcp.ServerOptions) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "many", Version: "1.0.0"}, options)
	for i := range tools {
		name := fmt.Sprintf("tool-%03d", i)
		mcp.AddTool(s, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest, struct{}) (
			*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: name}}}, nil, nil
		})
	}
	return s
}

// R5: the tools beyond the first page are there, whoever made the pages.
func TestAllPagesOfAListArrive(t *testing.T) {
	seeds.Shows(t, "000.6.list-tools", "000.9.tools-list", "003.3.tools-list")
	checkLeaks(t)
	const tools = 103
	m := startManager(t, supervisor.Config{
		Servers: map[string]supervisor.Spec{
			"sdk":   {Type: messages.SDK},
			"stdio": fixtureSpec("good", "tools=100", "page=7"),
			"empty": fixtureSpec("empty-cursor"), // an empty cursor is one like any other
		},
		InProcess: map[string]func(context.Context, inprocess.Peer) error{
			"sdk": gosdk.Serve(sdkServer(tools, &mcp.ServerOptions{PageSize: 10})),
		},
	})
	awaitConnected(t, m, "sdk", "stdio", "empty")
	if got := toolNames(m, "sdk"); len(got) != tools || got[0] != "tool-000" || got[tools-1] != "tool-102" {
		t.Errorf("%d of %d tools: %v", len(got), tools, got)
	}
	checkText(t, m, "sdk", "tool-102", nil, "tool-102")
	if got := toolNames(m, "stdio"); len(got) != 100+len(servers.GoodTools()) {
		t.Errorf("%d tools over stdio: %v", len(got), got)
	}
	checkText(t, m, "stdio", "extra-0099", nil, "extra-0099")
	if got := toolNames(m, "empty"); !slices.Equal(got, []string{"on-the-first-page", "on-the-second-page"}) {
		t.Errorf("after an empty cursor: %v", got)
	}
}

// A real server that changes its list says so, over a pipe and over the stream of an HTTP session, and the catalog
// follows; a watcher hears of it.
func TestAChangedListIsFollowed(t *testing.T) {
	seeds.Shows(t, "002.7.use")
	checkLeaks(t)
	sdk := peers.Go(t)
	sessions := startServer(t, goSDKServer(sdk, "false"))
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"stdio": {Command: sdk}, "http": {Type: messages.HTTP, URL: sessions.url("/")},
	}})
	awaitConnected(t, m, "stdio", "http")
	const added = "__transient_tool_for_list_changed"
	for _, name := range []string{"stdio", "http"} {
		if slices.Contains(toolNames(m, name), added) {
			t.Fatalf("%s lists %s already", name, added)
		}
		w := m.Watch(0)
		generation, heard := m.Tools().Generation(), false
		mustCall(t, m, name, "test_trigger_tool_change", nil)
		eventually(t, name+" shows its new tool", func() bool { return slices.Contains(toolNames(m, name), added) })
		mustCall(t, m, name, added, nil)
		for e := range w.Events(testContext(t, bound)) {
			if heard = heard || e.Kind == messages.EventTools && e.Server == name && e.Generation > generation; heard {
				break
			}
		}
		if !heard { // an event of the list of before may come first
			t.Errorf("%s: a watcher was not told of a generation after %d", name, generation)
		}
		w.Close()
		if st := statusOf(t, m, name); st.Status != messages.Connected || st.Restarts != 0 {
			t.Errorf("%s: %s, %d restarts", name, st.Status, st.Restarts)
		}
	}
}

// R6, R7: however a list changes, the last state of it is what the catalog shows in the end.
func TestTheLastChangeOfAListIsNeverLost(t *testing.T) {
	checkLeaks(t)
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{
		"storm": fixtureSpec("list-storm", "count=2000"),
		"while": fixtureSpec("changes-while-listing", "times=5"),
		"grows": fixtureSpec("good"),
	}})
	awaitConnected(t, m, "storm", "while", "grows")
	checkText(t, m, "grows", "grow", object{"name": "new"}, "done")
	checkText(t, m, "grows", "echo", object{"text": "undisturbed"}, "undisturbed")
	for name, last := range map[string]string{"storm": "after-the-storm", "while": "changed-5", "grows": "new"} {
		eventually(t, name+" shows "+last, func() bool { return slices.Contains(toolNames(m, name), last) })
	}
	checkText(t, m, "grows", "shrink", object{"name": "new"}, "done")
	eventually(t, "a tool that is gone is withdrawn", func() bool {
		return !slices.Contains(toolNames(m, "grows"), "new")
	})
}

func TestRefreshListsAgainOnDemand(t *testing.T) {
	seeds.Shows(t, "004.fr6.refresh", "004.fr3.ac-on-connect")
	checkLeaks(t)
	sdk := peers.Go(t)
	stateless := startServer(t, goSDKServer(sdk, "true")) // it has no stream to announce a change on
	m := startManager(t, supervisor.Config{Servers: map[string]supervisor.Spec{"http": {URL: stateless.url("/")}}})
	awaitConnected(t, m, "http")
	before := toolNames(m, "http")
	mustCall(t, m, "http", "test_trigger_tool_change", nil)
	if err := m.Refresh(testContext(t, bound), "http"); err != nil {
		t.Fatal(err)
	}
	if after := toolNames(m, "http"); len(after) != len(before)+1 {
		t.Errorf("%d tools before, %d after Refresh", len(before), len(after))
	}
}
