package servers

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

var behaved = []Kind{
	{"good", func(p params) int { return newServer(p).serve() },
		"behaves; tools=0 adds so many more tools, page=0 is the page size, delay=0s is the time before each " +
			"answer, name= and version= are what it says of itself"},
	{"asks", asks,
		"behaves; its tool ask sends {method, params} to the client and answers with what the client answered"},
	{"offers", offers,
		"behaves; has resources, templates, prompts, completion, log messages and progress (tool count); text://state " +
			"changes change=300ms after it is watched, and told= is a file that is written when it was read again; with unlisted= it cannot list its tools; its tool meta answers the _meta of its call"},
}

// growth is the part of the list that grow and shrink change.
type growth struct {
	mu    sync.Mutex
	names []string
}

func (g *growth) set(name string, there bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.names = slices.DeleteFunc(g.names, func(n string) bool { return n == name })
	if there {
		g.names = append(g.names, name)
	}
}

func (g *growth) get() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.names)
}

// definition is a tool that answers its own name.
func definition(name string) string {
	return `{"name":` + quoted(name) + `,"inputSchema":{"type":"object"}}`
}

func (s *server) definitions() []string {
	all := s.list
	if all == nil {
		all = slices.Concat(goodTools, s.extra)
	}
	for i := range s.number("tools", 0) {
		all = append(all, definition(fmt.Sprintf("extra-%04d", i)))
	}
	for _, n := range s.grown.get() {
		all = append(all, definition(n))
	}
	return all
}

// tools answers tools/list, in pages of page= tools. A cursor is the index of the first tool of its page.
func (s *server) tools(m message) {
	if !s.pause(m, s.duration("delay", 0)) {
		return
	}
	all := s.definitions()
	size := s.number("page", 0)
	if size <= 0 {
		s.result(m, `{"tools":[`+strings.Join(all, ",")+`]`+s.caching()+`}`)
		return
	}
	from := 0
	if c := cursor(m); c != "" {
		n, err := strconv.Atoi(c)
		if err != nil || n < 0 || n > len(all) {
			s.refuse(m, -32602, "Invalid cursor")
			return
		}
		from = n
	}
	to := min(from+size, len(all))
	next := ""
	if to < len(all) {
		next = `,"nextCursor":` + quoted(strconv.Itoa(to))
	}
	s.result(m, `{"tools":[`+strings.Join(all[from:to], ",")+`]`+next+s.caching()+`}`)
}

func cursor(m message) string {
	var p struct {
		Cursor string `json:"cursor"`
	}
	_ = json.Unmarshal(m.Params, &p) // no params is no cursor
	return p.Cursor
}

// call is the params of tools/call. Arguments of all good tools share one struct.
type call struct {
	Name      string `json:"name"`
	Arguments struct {
		Text, For, Name, File, Line, Method string
		A, B                                json.Number
		Code, Size                          int
		Params                              json.RawMessage
	} `json:"arguments"`
}

func (s *server) call(m message) {
	var c call
	if err := json.Unmarshal(m.Params, &c); err != nil {
		s.refuse(m, -32602, "Invalid params: "+err.Error())
		return
	}
	if !s.pause(m, s.duration("delay", 0)) {
		return
	}
	a := c.Arguments
	switch c.Name {
	case "echo":
		s.answer(m, a.Text)
	case "add":
		x, errX := a.A.Float64()
		y, errY := a.B.Float64()
		if errX != nil || errY != nil {
			s.refuse(m, -32602, "a and b are numbers")
			return
		}
		sum := strconv.FormatFloat(x+y, 'g', -1, 64)
		s.result(m, `{"content":[{"type":"text","text":"`+sum+`"}],"structuredContent":{"sum":`+sum+`}}`)
	case "sleep":
		d, err := time.ParseDuration(a.For)
		if err != nil {
			s.refuse(m, -32602, "for is no duration")
			return
		}
		if s.pause(m, d) {
			s.answer(m, "slept "+d.String())
		}
	case "fail":
		s.result(m, `{"content":[{"type":"text","text":`+quoted(a.Text)+`}],"isError":true}`)
	case "refuse":
		s.raw(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":"refused as asked",`+
			`"data":{"why":"asked"}}}`, m.ID, a.Code))
	case "crash":
		fmt.Fprintln(os.Stderr, "fixture: crashing as asked")
		os.Exit(a.Code)
	case "bigresult":
		s.answer(m, strings.Repeat("x", a.Size))
	case "env":
		s.answer(m, environment(a.Name))
	case "pid":
		s.answer(m, fmt.Sprintf("%d %d", os.Getpid(), os.Getppid()))
	case "cwd":
		dir, err := os.Getwd()
		if err != nil {
			s.refuse(m, -32603, err.Error())
			return
		}
		s.answer(m, dir)
	case "append":
		if err := appendLine(a.File, a.Line); err != nil {
			s.refuse(m, -32603, err.Error())
			return
		}
		s.answer(m, "appended")
	case "grow", "shrink":
		s.grown.set(a.Name, c.Name == "grow")
		s.answer(m, "done")
		s.notify("notifications/tools/list_changed")
	default:
		s.other(m, c)
	}
}

// other calls a tool that not every good server has.
func (s *server) other(m message, c call) {
	switch {
	case strings.HasPrefix(c.Name, "extra-") || slices.Contains(s.grown.get(), c.Name):
		s.answer(m, c.Name)
	case s.tool != nil:
		s.tool(s, m, c)
	default:
		s.refuse(m, -32602, "Unknown tool: "+c.Name)
	}
}

func (s *server) answer(m message, text string) {
	s.result(m, `{"content":[{"type":"text","text":`+quoted(text)+`}],"isError":false}`)
}

func environment(name string) string {
	if name != "" {
		return os.Getenv(name)
	}
	var names []string
	for _, kv := range os.Environ() {
		// Windows has entries like "=C:=C:\": their name begins with the separator.
		if k, _, ok := strings.Cut(kv, "="); ok && k != "" {
			names = append(names, k)
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

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

func asks(p params) int {
	s := newServer(p)
	s.extra = []string{`{"name":"ask","description":"asks the client","inputSchema":{"type":"object","properties":` +
		`{"method":{"type":"string"},"params":{"type":"object"}},"required":["method"]}}`}
	s.tool = func(s *server, m message, c call) {
		if c.Name != "ask" {
			s.refuse(m, -32602, "Unknown tool: "+c.Name)
			return
		}
		parameters := string(c.Arguments.Params)
		if parameters == "" {
			parameters = "{}"
		}
		got := s.ask(c.Arguments.Method, parameters)
		if got.Error != nil {
			s.answer(m, "error "+string(got.Error))
			return
		}
		s.answer(m, "result "+string(got.Result))
	}
	return s.serve()
}
