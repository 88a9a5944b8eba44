package agents

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	mcpclient "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// An agent is a client of an SDK that we did not write, in the name of a person: it answers every question with that name.
type agent interface {
	// call returns the text of the result; progress reports each notification of it, nil asks for none.
	call(ctx context.Context, tool string, progress func()) (string, error)
	names(ctx context.Context) (tools, prompts, resources []string, err error)
	prompt(ctx context.Context, name, who string) (string, error)
	complete(ctx context.Context, prompt, value string) (string, error)
	read(ctx context.Context, uri string) (string, error)
	// level asks for log messages of a level, from now on or with each call.
	level(ctx context.Context, level string) error
	watch(ctx context.Context, uri string) error
	// heard are the URIs of updates, and the texts of log messages.
	heard() []string
	Close() error
}

// ears collect the notifications that an agent gets.
type ears struct {
	mu  sync.Mutex
	all []string
}

func (e *ears) add(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, text)
}

func (e *ears) heard() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.all...)
}

// bearer sends a token with each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// goAgent is a client of the Go SDK.
type goAgent struct {
	*mcp.ClientSession
	*ears
	modern   bool
	mu       sync.Mutex
	progress map[string]func()
	calls    int
	least    string // the level that each call of the modern era names
}

// overHTTP is the way of the Go SDK to an address, with the token of a person.
func overHTTP(url, person string) mcp.Transport {
	return &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer(person + "-token-of-a-test")}}
}

func newGoAgent(t *testing.T, way mcp.Transport, person, version string) agent {
	a := &goAgent{ears: &ears{}, modern: version == "", progress: map[string]func(){}}
	client := mcp.NewClient(&mcp.Implementation{Name: "agents", Version: "1"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"name": person}}, nil
		},
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Model: "m", Role: "assistant", Content: &mcp.TextContent{Text: person}}, nil
		},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			a.mu.Lock()
			note := a.progress[fmt.Sprint(r.Params.ProgressToken)]
			a.mu.Unlock()
			if note != nil {
				note()
			}
		},
		ResourceUpdatedHandler: func(_ context.Context, r *mcp.ResourceUpdatedNotificationRequest) { a.add(r.Params.URI) },
		LoggingMessageHandler:  func(_ context.Context, r *mcp.LoggingMessageRequest) { a.add(fmt.Sprint(r.Params.Data)) },
	})
	var err error
	a.ClientSession, err = client.Connect(t.Context(), way, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *goAgent) call(ctx context.Context, tool string, progress func()) (string, error) {
	params := &mcp.CallToolParams{Name: tool, Arguments: map[string]any{}}
	if a.least != "" {
		params.Meta = mcp.Meta{"io.modelcontextprotocol/logLevel": a.least}
	}
	if progress != nil {
		a.mu.Lock()
		a.calls++
		token := fmt.Sprint("token-", a.calls)
		a.progress[token] = progress
		a.mu.Unlock()
		params.SetProgressToken(token)
	}
	res, err := a.CallTool(ctx, params)
	if err != nil {
		return "", err
	}
	text := ""
	for _, c := range res.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			text += c.Text
		}
	}
	if res.IsError {
		return "", fmt.Errorf("the tool failed: %s", text)
	}
	return text, nil
}

func (a *goAgent) names(ctx context.Context) (tools, prompts, resources []string, err error) {
	for tool, problem := range a.Tools(ctx, nil) {
		if err = problem; err != nil {
			return
		}
		tools = append(tools, tool.Name)
	}
	for prompt, problem := range a.Prompts(ctx, nil) {
		if err = problem; err != nil {
			return
		}
		prompts = append(prompts, prompt.Name)
	}
	for resource, problem := range a.Resources(ctx, nil) {
		if err = problem; err != nil {
			return
		}
		resources = append(resources, resource.URI)
	}
	return
}

func (a *goAgent) prompt(ctx context.Context, name, who string) (string, error) {
	res, err := a.GetPrompt(ctx, &mcp.GetPromptParams{Name: name, Arguments: map[string]string{"who": who}})
	if err != nil {
		return "", err
	}
	return res.Messages[0].Content.(*mcp.TextContent).Text, nil
}

func (a *goAgent) complete(ctx context.Context, prompt, value string) (string, error) {
	res, err := a.Complete(ctx, &mcp.CompleteParams{Ref: &mcp.CompleteReference{Type: "ref/prompt", Name: prompt}, Argument: mcp.CompleteParamsArgument{Name: "who", Value: value}})
	if err != nil {
		return "", err
	}
	return strings.Join(res.Completion.Values, " "), nil
}

func (a *goAgent) read(ctx context.Context, uri string) (string, error) {
	res, err := a.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
	if err != nil {
		return "", err
	}
	return res.Contents[0].Text, nil
}

func (a *goAgent) level(ctx context.Context, level string) error {
	if a.modern {
		a.least = level
		return nil
	}
	return a.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: mcp.LoggingLevel(level)})
}

func (a *goAgent) watch(ctx context.Context, uri string) error {
	return a.Subscribe(ctx, &mcp.SubscribeParams{URI: uri})
}

// mcpgoAgent is a client of mcp-go.
type mcpgoAgent struct {
	*mcpclient.Client
	*ears
	person   string
	mu       sync.Mutex
	progress map[string]func()
	calls    int
}

func newMCPGoAgent(t *testing.T, url, person, version string) *mcpgoAgent {
	a := &mcpgoAgent{ears: &ears{}, person: person, progress: map[string]func(){}}
	options := []transport.StreamableHTTPCOption{transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + person + "-token-of-a-test"})}
	if !mcpgo.IsModernProtocol(version) { // with it, the client speaks the legacy era
		options = append(options, transport.WithContinuousListening()) //nolint:staticcheck // deprecated with the legacy era, which this client speaks
	}
	way, err := transport.NewStreamableHTTP(url, options...)
	if err != nil {
		t.Fatal(err)
	}
	a.Client = mcpclient.NewClient(way, mcpclient.WithElicitationHandler(a), mcpclient.WithSamplingHandler(a))
	a.OnNotification(func(n mcpgo.JSONRPCNotification) {
		fields := n.Params.AdditionalFields
		switch n.Method {
		case "notifications/resources/updated":
			a.add(fmt.Sprint(fields["uri"]))
		case "notifications/message":
			a.add(fmt.Sprint(fields["data"]))
		case "notifications/progress":
			a.mu.Lock()
			note := a.progress[fmt.Sprint(fields["progressToken"])]
			a.mu.Unlock()
			if note != nil {
				note()
			}
		}
	})
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var init mcpgo.InitializeRequest
	init.Params.ProtocolVersion, init.Params.ClientInfo = version, mcpgo.Implementation{Name: "agents", Version: "1"}
	if _, err := a.Initialize(t.Context(), init); err != nil {
		t.Fatal(err)
	}
	if a.ProtocolVersion() != version {
		t.Fatalf("mcp-go speaks %s", a.ProtocolVersion())
	}
	return a
}

func (a *mcpgoAgent) Elicit(context.Context, mcpgo.ElicitationRequest) (*mcpgo.ElicitationResult, error) {
	return &mcpgo.ElicitationResult{ElicitationResponse: mcpgo.ElicitationResponse{Action: mcpgo.ElicitationResponseActionAccept, Content: map[string]any{"name": a.person}}}, nil
}

func (a *mcpgoAgent) CreateMessage(context.Context, mcpgo.CreateMessageRequest) (*mcpgo.CreateMessageResult, error) {
	return &mcpgo.CreateMessageResult{Model: "m", SamplingMessage: mcpgo.SamplingMessage{Role: mcpgo.RoleAssistant, Content: mcpgo.NewTextContent(a.person)}}, nil
}

func (a *mcpgoAgent) call(ctx context.Context, tool string, progress func()) (string, error) {
	var r mcpgo.CallToolRequest
	r.Params.Name, r.Params.Arguments = tool, map[string]any{}
	if progress != nil {
		a.mu.Lock()
		a.calls++
		token := fmt.Sprint("token-", a.calls)
		a.progress[token] = progress
		a.mu.Unlock()
		r.Params.Meta = &mcpgo.Meta{ProgressToken: token}
	}
	res, err := a.CallTool(ctx, r)
	if err != nil {
		return "", err
	}
	text := ""
	for _, c := range res.Content {
		if c, ok := c.(mcpgo.TextContent); ok {
			text += c.Text
		}
	}
	if res.IsError {
		return "", fmt.Errorf("the tool failed: %s", text)
	}
	return text, nil
}

func (a *mcpgoAgent) names(ctx context.Context) (tools, prompts, resources []string, err error) {
	t, err := a.ListTools(ctx, mcpgo.ListToolsRequest{})
	if err != nil {
		return
	}
	p, err := a.ListPrompts(ctx, mcpgo.ListPromptsRequest{})
	if err != nil {
		return
	}
	r, err := a.ListResources(ctx, mcpgo.ListResourcesRequest{})
	if err != nil {
		return
	}
	for i := range t.Tools {
		tools = append(tools, t.Tools[i].Name)
	}
	for i := range p.Prompts {
		prompts = append(prompts, p.Prompts[i].Name)
	}
	for i := range r.Resources {
		resources = append(resources, r.Resources[i].URI)
	}
	return
}

func (a *mcpgoAgent) prompt(ctx context.Context, name, who string) (string, error) {
	var r mcpgo.GetPromptRequest
	r.Params.Name, r.Params.Arguments = name, map[string]string{"who": who}
	res, err := a.GetPrompt(ctx, r)
	if err != nil {
		return "", err
	}
	return res.Messages[0].Content.(mcpgo.TextContent).Text, nil
}

func (a *mcpgoAgent) complete(ctx context.Context, prompt, value string) (string, error) {
	var r mcpgo.CompleteRequest
	r.Params.Ref = mcpgo.PromptReference{Type: "ref/prompt", Name: prompt}
	r.Params.Argument.Name, r.Params.Argument.Value = "who", value
	res, err := a.Complete(ctx, r)
	if err != nil {
		return "", err
	}
	return strings.Join(res.Completion.Values, " "), nil
}

func (a *mcpgoAgent) read(ctx context.Context, uri string) (string, error) {
	var r mcpgo.ReadResourceRequest
	r.Params.URI = uri
	res, err := a.ReadResource(ctx, r)
	if err != nil {
		return "", err
	}
	return res.Contents[0].(mcpgo.TextResourceContents).Text, nil
}

func (a *mcpgoAgent) level(ctx context.Context, level string) error {
	var r mcpgo.SetLevelRequest
	r.Params.Level = mcpgo.LoggingLevel(level)
	return a.SetLevel(ctx, r)
}

func (a *mcpgoAgent) watch(ctx context.Context, uri string) error {
	if mcpgo.IsModernProtocol(a.ProtocolVersion()) {
		_, err := a.ListenAsync(ctx, mcpgo.SubscriptionFilter{ResourceSubscriptions: []string{uri}}, func(error) {})
		return err
	}
	var r mcpgo.SubscribeRequest
	r.Params.URI = uri
	return a.Subscribe(ctx, r) //nolint:staticcheck // as above
}

// ownServers are the configuration of the servers of these tests.
func ownServers(t *testing.T) map[string]any {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	server := func(which, share string) map[string]any {
		return map[string]any{"command": self, "env": map[string]string{ownServer: which}, "share": share, "era": "legacy"}
	}
	return map[string]any{"own": server("asking", "principal"), "shared": server("asking", "all"), "tasks": server("tasks", "all")}
}

// serveTwo serves them to the principals ann and bob, and returns the address.
func serveTwo(t *testing.T) string {
	t.Helper()
	dir, tokens := t.TempDir(), map[string]any{}
	for _, person := range []string{"ann", "bob"} {
		file := filepath.Join(dir, person)
		if err := os.WriteFile(file, []byte(person+"-token-of-a-test"), 0o600); err != nil {
			t.Fatal(err)
		}
		tokens[person] = map[string]string{"file": file}
	}
	return newPlace(t, written(t, map[string]any{"mcpServers": ownServers(t), "gateway": map[string]any{"tokens": tokens}})).serveWith()
}

// kinds are the clients that are tried. Of the legacy era and over HTTP, mcp-go tells no server that a call is cancelled, and drops the answer to
// a question when the request ends on whose stream it came: there each principal is asked about one call at a time.
var kinds = map[string]struct {
	connect func(t *testing.T, url, person string) agent
	cancels bool
	asks    int // calls of one principal at a time that ask
}{
	"go-sdk": {func(t *testing.T, url, person string) agent {
		return newGoAgent(t, overHTTP(url, person), person, "2025-11-25")
	}, true, 2},
	"go-sdk modern": {func(t *testing.T, url, person string) agent { return newGoAgent(t, overHTTP(url, person), person, "") }, true, 2},
	"mcp-go":        {func(t *testing.T, url, person string) agent { return newMCPGoAgent(t, url, person, "2025-11-25") }, false, 1},
	"mcp-go modern": {func(t *testing.T, url, person string) agent {
		return newMCPGoAgent(t, url, person, mcpgo.ProtocolVersion20260728)
	}, true, 2},
}

// TestTwoPrincipalsAtOnce has clients of two SDKs, each for two principals at the same time, do what an agent does: what one of them is asked, told
// and answered never is the other's.
func TestTwoPrincipalsAtOnce(t *testing.T) {
	t.Parallel()
	url := serveTwo(t)
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			ann, bob := kind.connect(t, url, "ann"), kind.connect(t, url, "bob")
			defer ann.Close()
			defer bob.Close()
			for person, a := range map[string]agent{"ann": ann, "bob": bob} {
				lists(ctx, t, a)
				offers(ctx, t, a, person)
				progresses(ctx, t, a)
				if kind.cancels {
					cancels(ctx, t, a)
				}
			}
			for together := range slices.Chunk([]string{"own__ask", "own__sample"}, kind.asks) {
				asks(ctx, t, map[string]agent{"ann": ann, "bob": bob}, together...)
			}
			tells(ctx, t, ann, bob)
		})
	}
}

// TestTheGoSDKOnLines has clients of the Go SDK do the same through the commands that an agent starts.
func TestTheGoSDKOnLines(t *testing.T) {
	command(t) // it is built before the time of the clients begins
	for _, command := range []string{"serve --stdio", "connect"} {
		for _, version := range []string{"2025-11-25", ""} {
			t.Run(command+" "+version, func(t *testing.T) {
				t.Parallel()
				config := written(t, map[string]any{"mcpServers": ownServers(t)})
				p := newPlace(t, config)
				args := []string{"serve", "--stdio", "-c", "c.json"}
				if command == "connect" {
					args = []string{"connect"}
					p.userServers(config)
					t.Cleanup(func() {
						if out, err := p.run("down"); err != nil {
							t.Errorf("down: %v\n%s", err, out)
						}
					})
				}
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				start := func(person string) agent {
					return newGoAgent(t, &mcp.CommandTransport{Command: p.command(args...)}, person, version)
				}
				ann, bob := start("ann"), start("bob")
				defer ann.Close()
				defer bob.Close()
				for _, a := range []agent{ann, bob} {
					lists(ctx, t, a)
					offers(ctx, t, a, "ann")
					progresses(ctx, t, a)
					cancels(ctx, t, a)
				}
				for _, server := range []string{"own", "shared"} { // one agent after the other: both may be one principal's, and serve --stdio has none
					asks(ctx, t, map[string]agent{"ann": ann}, server+"__ask", server+"__sample")
					asks(ctx, t, map[string]agent{"bob": bob}, server+"__ask", server+"__sample")
				}
				tells(ctx, t, ann, bob)
			})
		}
	}
}

// lists waits until everything is listed.
func lists(ctx context.Context, t *testing.T, a agent) {
	t.Helper()
	for {
		tools, prompts, resources, err := a.names(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(tools, prompts, resources)
		if strings.Contains(got, "own__ask ") && strings.Contains(got, "shared__touch") && strings.Contains(got, "tasks__work") && strings.Contains(got, "own__greet") &&
			strings.Contains(got, "shared__greet") && strings.Contains(got, noted) {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("listed are %s", got)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func offers(ctx context.Context, t *testing.T, a agent, person string) {
	t.Helper()
	if text, err := a.prompt(ctx, "own__greet", person); err != nil || text != "hello "+person {
		t.Errorf("the prompt of %s is %q, %v", person, text, err)
	}
	if text, err := a.complete(ctx, "shared__greet", person); err != nil || text != person+"-completed" {
		t.Errorf("the completion of %s is %q, %v", person, text, err)
	}
	if text, err := a.read(ctx, noted); err != nil || text != "what is noted" {
		t.Errorf("the resource is %q, %v", text, err)
	}
}

func progresses(ctx context.Context, t *testing.T, a agent) {
	t.Helper()
	steps := make(chan struct{}, 100)
	if text, err := a.call(ctx, "shared__steps", func() { steps <- struct{}{} }); err != nil || text != "done" {
		t.Errorf("the call is %q, %v", text, err)
	}
	for n := range 3 { // the client handles them beside the answer
		select {
		case <-steps:
		case <-ctx.Done():
			t.Fatalf("of the progress %d notifications came", n)
		}
	}
}

// cancels has the cancellation of a call reach its server, which is the principal's own.
func cancels(ctx context.Context, t *testing.T, a agent) {
	t.Helper()
	before, err := a.call(ctx, "own__cancelled", nil)
	if err != nil {
		t.Fatal(err)
	}
	bounded, cancel := context.WithCancel(ctx)
	if text, err := a.call(bounded, "own__wait", cancel); err == nil {
		t.Errorf("the cancelled call is %q", text)
	}
	for {
		after, err := a.call(ctx, "own__cancelled", nil)
		if err != nil {
			t.Fatal(err)
		}
		if after != before {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// asks has the server of each principal ask, while that of the other one does.
func asks(ctx context.Context, t *testing.T, agents map[string]agent, tools ...string) {
	t.Helper()
	var all sync.WaitGroup
	for person, a := range agents {
		for _, tool := range tools {
			all.Go(func() {
				for range 10 {
					if text, err := a.call(ctx, tool, nil); err != nil || strings.TrimPrefix(text, "accept ") != person {
						t.Errorf("%s of %s is answered by %q, %v", tool, person, text, err)
						return
					}
				}
			})
		}
	}
	all.Wait()
}

// tells has one of two agents hear of updates and log messages, and not the other.
func tells(ctx context.Context, t *testing.T, ann, bob agent) {
	t.Helper()
	if err := ann.level(ctx, "debug"); err != nil {
		t.Errorf("the level: %v", err)
	}
	if err := ann.watch(ctx, noted); err != nil {
		t.Errorf("the watch: %v", err)
	}
	for !strings.Contains(fmt.Sprint(ann.heard()), noted) || !strings.Contains(fmt.Sprint(ann.heard()), "said at error") {
		if ctx.Err() != nil {
			t.Fatalf("ann has heard %.300q", ann.heard())
		}
		// The resource is the first server's that lists it.
		for _, tool := range []string{"own__touch", "own__log"} {
			if _, err := ann.call(ctx, tool, nil); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(50 * time.Millisecond)
	}
	if heard := bob.heard(); len(heard) > 0 {
		t.Errorf("bob has heard %q", heard)
	}
}

// startTask calls tasks__work as a task, and returns its id.
func (a *mcpgoAgent) startTask(ctx context.Context, t *testing.T) string {
	t.Helper()
	ttl := int64(patience / time.Millisecond)
	r, err := a.GetTransport().SendRequest(ctx, transport.JSONRPCRequest{JSONRPC: "2.0", ID: mcpgo.NewRequestId("task of " + a.person), Method: "tools/call",
		Params: mcpgo.CallToolParams{Name: "tasks__work", Arguments: map[string]any{"who": a.person}, Task: &mcpgo.TaskParams{TTL: &ttl}}})
	if err != nil || r.Error != nil {
		t.Fatalf("the task of %s: %v, %v", a.person, r, err)
	}
	var created mcpgo.CreateTaskResult
	if err := json.Unmarshal(r.Result, &created); err != nil || created.Task.TaskId == "" {
		t.Fatalf("the task of %s is %s, %v", a.person, r.Result, err)
	}
	return created.Task.TaskId
}

// tasks returns the ids in the list of tasks.
func (a *mcpgoAgent) tasks(ctx context.Context, t *testing.T) (ids []string) {
	t.Helper()
	list, err := a.ListTasks(ctx, mcpgo.ListTasksRequest{})
	if err != nil {
		t.Fatalf("the tasks of %s: %v", a.person, err)
	}
	for _, task := range list.Tasks {
		ids = append(ids, task.TaskId)
	}
	return ids
}

// TestTasksOfTwoPrincipals has two principals run tasks at one server that they share: neither sees, gets or cancels that of the other one.
func TestTasksOfTwoPrincipals(t *testing.T) {
	t.Parallel()
	url := serveTwo(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ann, bob := newMCPGoAgent(t, url, "ann", "2025-11-25"), newMCPGoAgent(t, url, "bob", "2025-11-25")
	defer ann.Close()
	defer bob.Close()
	lists(ctx, t, ann)
	ofAnn, ofBob := ann.startTask(ctx, t), bob.startTask(ctx, t)
	for _, c := range []struct {
		agent       *mcpgoAgent
		own, others string
	}{{ann, ofAnn, ofBob}, {bob, ofBob, ofAnn}} {
		if ids := c.agent.tasks(ctx, t); !slices.Equal(ids, []string{c.own}) {
			t.Errorf("%s sees the tasks %q, and has %s", c.agent.person, ids, c.own)
		}
		var get mcpgo.GetTaskRequest
		get.Params.TaskId = c.others
		if task, err := c.agent.GetTask(ctx, get); err == nil {
			t.Errorf("%s gets the other's task: %v", c.agent.person, task)
		}
		var result mcpgo.TaskResultRequest
		result.Params.TaskId = c.others
		if task, err := c.agent.TaskResult(ctx, result); err == nil {
			t.Errorf("%s gets the result of the other's task: %v", c.agent.person, task)
		}
		var stop mcpgo.CancelTaskRequest
		stop.Params.TaskId = c.others
		if task, err := c.agent.CancelTask(ctx, stop); err == nil {
			t.Errorf("%s cancels the other's task: %v", c.agent.person, task)
		}
		get.Params.TaskId = c.own
		if task, err := c.agent.GetTask(ctx, get); err != nil || task.Status != mcpgo.TaskStatusWorking {
			t.Errorf("the own task of %s is %v, %v", c.agent.person, task, err)
		}
	}
	// The one that is cancelled ends, and the other one goes on to its result.
	var stop mcpgo.CancelTaskRequest
	stop.Params.TaskId = ofAnn
	if task, err := ann.CancelTask(ctx, stop); err != nil || task.Status != mcpgo.TaskStatusCancelled {
		t.Errorf("ann's task is cancelled to %v, %v", task, err)
	}
	if _, err := ann.call(ctx, "tasks__release", nil); err != nil {
		t.Error(err)
	}
	var result mcpgo.TaskResultRequest
	result.Params.TaskId = ofBob
	if got, err := bob.TaskResult(ctx, result); err != nil || len(got.Content) != 1 || got.Content[0].(mcpgo.TextContent).Text != "worked for bob" {
		t.Errorf("bob's result is %v, %v", got, err)
	}
}
