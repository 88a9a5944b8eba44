package servers

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

var goodKinds = []Kind{
	{"good", func(p params) int { return newServer(p).serve() },
		"behaves; tools=0 adds so many more tools, page=0 is the page size, delay=0s is the time before each " +
			"answer, name= and version= are what it says of itself"},
	{"asks", asksClient,
		"behaves; its tool ask sends {method, params} to the client and answers with what the client answered; with early= it asks " +
			"for the roots when it is initialized and when they have changed, as npm's filesystem server does, and its tool known answers them"},
	{"offers", offersAll,
		"behaves; has resources, templates, prompts, completion, log messages and progress (tool count); text://state " +
			"changes change=300ms after it is watched, and told= is a file that is written when it was read again; with unlisted= it cannot list its tools; its tool meta answers the _meta of its call"},
}

// dynamicTools is the part of the list that the tools grow and shrink change. Calls run concurrently, so that mu guards
// it.
type dynamicTools struct {
	mu    sync.Mutex
	names []string
}

// setTool adds a tool, or removes it if there is false.
func (g *dynamicTools) setTool(name string, there bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.names = slices.DeleteFunc(g.names, func(n string) bool { return n == name })
	if there {
		g.names = append(g.names, name)
	}
}

func (g *dynamicTools) toolNames() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.names)
}

// bareDefinition returns the definition of a tool that answers its own name.
func bareDefinition(name string) string {
	return `{"name":` + quoteJSON(name) + `,"inputSchema":{"type":"object"}}`
}

// toolDefinitions returns the whole list at this moment: the fixture's own list, or the good tools with extra ones,
// then those of tools= and of grow.
func (s *server) toolDefinitions() []string {
	all := s.list
	if all == nil {
		all = slices.Concat(goodTools, s.extra)
	}
	for i := range s.intOr("tools", 0) {
		all = append(all, bareDefinition(fmt.Sprintf("extra-%04d", i)))
	}
	for _, n := range s.dynamic.toolNames() {
		all = append(all, bareDefinition(n))
	}
	return all
}

// listTools answers tools/list, in pages of page= tools. A cursor is the index of the first tool of its page.
func (s *server) listTools(m message) {
	if !s.waitOrCancel(m, s.durationOr("delay", 0)) {
		return
	}
	all := s.toolDefinitions()
	size := s.intOr("page", 0)
	if size <= 0 {
		s.sendResult(m, `{"tools":[`+strings.Join(all, ",")+`]`+s.cacheMembers()+`}`)
		return
	}
	from := 0
	// A cursor of another list is refused, as the specification allows.
	if c := cursorOf(m); c != "" {
		n, err := strconv.Atoi(c)
		if err != nil || n < 0 || n > len(all) {
			s.sendError(m, -32602, "Invalid cursor")
			return
		}
		from = n
	}
	to := min(from+size, len(all))
	next := ""
	if to < len(all) {
		next = `,"nextCursor":` + quoteJSON(strconv.Itoa(to))
	}
	s.sendResult(m, `{"tools":[`+strings.Join(all[from:to], ",")+`]`+next+s.cacheMembers()+`}`)
}

// cursorOf returns the cursor of a request, empty if it has none.
func cursorOf(m message) string {
	var p struct {
		Cursor string `json:"cursor"`
	}
	// Missing params mean the first page.
	_ = json.Unmarshal(m.Params, &p)
	return p.Cursor
}

// callParams holds the params of tools/call. The arguments of all good tools share one struct.
type callParams struct {
	Name      string `json:"name"`
	Arguments struct {
		Text, For, Name, File, Line, Method string
		A, B                                json.Number
		Code, Size                          int
		Params                              json.RawMessage
	} `json:"arguments"`
}

// callTool runs one of the good tools.
func (s *server) callTool(m message) {
	var c callParams
	if err := json.Unmarshal(m.Params, &c); err != nil {
		s.sendError(m, -32602, "Invalid params: "+err.Error())
		return
	}
	// A cancelled call gets no answer, as the specification demands.
	if !s.waitOrCancel(m, s.durationOr("delay", 0)) {
		return
	}
	a := c.Arguments
	switch c.Name {
	case "echo":
		s.sendText(m, a.Text)
	case "add":
		x, errX := a.A.Float64()
		y, errY := a.B.Float64()
		if errX != nil || errY != nil {
			s.sendError(m, -32602, "a and b are numbers")
			return
		}
		sum := strconv.FormatFloat(x+y, 'g', -1, 64)
		s.sendResult(m, `{"content":[{"type":"text","text":"`+sum+`"}],"structuredContent":{"sum":`+sum+`}}`)
	case "sleep":
		d, err := time.ParseDuration(a.For)
		if err != nil {
			s.sendError(m, -32602, "for is no duration")
			return
		}
		if s.waitOrCancel(m, d) {
			s.sendText(m, "slept "+d.String())
		}
	case "fail":
		s.sendResult(m, `{"content":[{"type":"text","text":`+quoteJSON(a.Text)+`}],"isError":true}`)
	// The data of the error lets a test see that the client passes it on.
	case "refuse":
		s.sendLine(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"refused as asked",`+
			`"data":{"why":"asked"}}}`, m.ID, a.Code))
	case "crash":
		fmt.Fprintln(os.Stderr, "fixture: crashing as asked")
		os.Exit(a.Code)
	case "bigresult":
		s.sendText(m, strings.Repeat("x", a.Size))
	case "env":
		s.sendText(m, environmentText(a.Name))
	case "pid":
		s.sendText(m, fmt.Sprintf("%d %d", os.Getpid(), os.Getppid()))
	case "cwd":
		dir, err := os.Getwd()
		if err != nil {
			s.sendError(m, -32603, err.Error())
			return
		}
		s.sendText(m, dir)
	case "append":
		if err := appendLine(a.File, a.Line); err != nil {
			s.sendError(m, -32603, err.Error())
			return
		}
		s.sendText(m, "appended")
	case "grow", "shrink":
		s.dynamic.setTool(a.Name, c.Name == "grow")
		s.sendText(m, "done")
		s.sendNotification("notifications/tools/list_changed")
	default:
		s.callExtraTool(m, c)
	}
}

// callExtraTool runs a tool that not every good server has.
func (s *server) callExtraTool(m message, c callParams) {
	switch {
	case strings.HasPrefix(c.Name, "extra-") || slices.Contains(s.dynamic.toolNames(), c.Name):
		s.sendText(m, c.Name)
	case s.tool != nil:
		s.tool(s, m, c)
	default:
		s.sendError(m, -32602, "Unknown tool: "+c.Name)
	}
}

// sendText answers a call with one text.
func (s *server) sendText(m message, text string) {
	s.sendResult(m, `{"content":[{"type":"text","text":`+quoteJSON(text)+`}],"isError":false}`)
}

// environmentText returns the value of a variable or, without a name, the sorted names of all variables.
func environmentText(name string) string {
	if name != "" {
		return os.Getenv(name)
	}
	var names []string
	for _, kv := range os.Environ() {
		if k, _, ok := strings.Cut(kv, "="); ok && k != "" {
			names = append(names, k)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// appendLine appends a line to a file with one write, so that lines of several processes do not mix.
func appendLine(file, line string) error {
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(line + "\n")
	if e := f.Close(); err == nil {
		err = e
	}
	return err
}

// asksClient runs a server whose tool ask sends a request to the client while the call waits.
func asksClient(p params) int {
	s := newServer(p)
	s.extra = []string{`{"name":"ask","description":"asks the client","inputSchema":{"type":"object","properties":` +
		`{"method":{"type":"string"},"params":{"type":"object"}},"required":["method"]}}`}
	var known atomic.Value
	known.Store("nothing")
	if _, early := p["early"]; early {
		s.extra = append(s.extra, bareDefinition("known"))
		ask := func(s *server, _ message) {
			go func() {
				got := s.requestClient("roots/list", "{}")
				known.Store(string(got.Result) + string(got.Error))
			}()
		}
		s.handlers["notifications/initialized"] = ask
		s.handlers["notifications/roots/list_changed"] = ask
	}
	s.tool = func(s *server, m message, c callParams) {
		if c.Name == "known" {
			s.sendText(m, known.Load().(string))
			return
		}
		if c.Name != "ask" {
			s.sendError(m, -32602, "Unknown tool: "+c.Name)
			return
		}
		parameters := string(c.Arguments.Params)
		if parameters == "" {
			parameters = "{}"
		}
		got := s.requestClient(c.Arguments.Method, parameters)
		if got.Error != nil {
			s.sendText(m, "error "+string(got.Error))
			return
		}
		s.sendText(m, "result "+string(got.Result))
	}
	return s.serve()
}
