package drills

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor/gateway"
	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// agent is a program that comes to a gateway on lines in memory. Its methods may be called from any goroutine.
type agent struct {
	name string
	// modern says that it speaks the modern era, with what it declares in each request.
	modern       bool
	capabilities any
	out          *io.PipeWriter
	lines        chan []byte
	// hangUp ends the agent's connection at once.
	hangUp context.CancelFunc

	mu      sync.Mutex
	lastID  int
	pending map[string]chan message
	// onAsk answers what it is asked; nil refuses. An answer of nil keeps the question open until it is taken back.
	onAsk func(method string, params json.RawMessage) any
	// notes and asked are the notifications and the questions that it has got, in order; over is set when nothing more comes.
	notes, asked []message
	over         bool
}

// openGateway puts a gateway before the drill's manager.
func (s *stage) openGateway(cfg gateway.Config) *gateway.Gateway {
	cfg.Manager = s.manager
	g := gateway.New(cfg)
	s.ends = append(s.ends, g.Close)
	return g
}

// joinAgent lets an agent come to a gateway, in the name of a principal and by a path, and reports that it cannot begin.
func (s *stage) joinAgent(g *gateway.Gateway, p serve.Principal, path serve.Path, capabilities any) *agent {
	a, err := s.tryToJoin(g, p, path, capabilities)
	if err != nil {
		s.reportFinding("I24", "", "an agent cannot begin: %v", err)
	}
	return a
}

// tryToJoin lets an agent come to a gateway, as joinAgent does, and returns the error with which the gateway refused its handshake. The agent
// declares the capabilities.
func (s *stage) tryToJoin(g *gateway.Gateway, p serve.Principal, path serve.Path, capabilities any) (*agent, error) {
	fromAgent, out := io.Pipe()
	in, toAgent := io.Pipe()
	a := &agent{name: fmt.Sprintf("%s-%d", p.Name, s.rng.IntN(1000)), out: out, lines: make(chan []byte, 256), pending: map[string]chan message{}}
	ctx, cancel := context.WithCancel(s.ctx)
	a.hangUp = cancel
	s.runBeside(func() {
		err := serve.Stdio(ctx, serve.Options{Service: g, MaxRequests: s.maxRequests}, p, path, fromAgent, toAgent)
		_ = fromAgent.CloseWithError(io.ErrClosedPipe)
		_ = toAgent.CloseWithError(err)
	})
	s.runBeside(func() { a.readLines(in) })
	s.runBeside(func() {
		for {
			select {
			case line := <-a.lines:
				if _, err := a.out.Write(append(line, '\n')); err != nil {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	})
	s.ends = append(s.ends, func() {
		_ = out.Close()
		s.settleAll()
		cancel()
		_ = in.CloseWithError(io.ErrClosedPipe)
	})
	if a.capabilities = orEmpty(capabilities); s.modernAgents {
		a.modern = true
		return a, nil
	}
	_, err := a.callMethod(s.ctx, "initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": orEmpty(capabilities),
		"clientInfo": map[string]any{"name": "drill", "version": "1"}})
	if err == nil {
		a.sendMessage(map[string]any{"method": "notifications/initialized"})
	}
	return a, err
}

// readLines reads until the gateway has ended the session.
func (a *agent) readLines(in io.Reader) {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			a.mu.Lock()
			a.over = true
			for id, waiting := range a.pending {
				close(waiting)
				delete(a.pending, id)
			}
			a.mu.Unlock()
			return
		}
		var m message
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		a.mu.Lock()
		switch {
		case m.Method == "":
			if waiting := a.pending[string(m.ID)]; waiting != nil {
				waiting <- m
				delete(a.pending, string(m.ID))
			}
		case len(m.ID) == 0:
			a.notes = append(a.notes, m)
		default:
			a.asked = append(a.asked, m)
		}
		answer := a.onAsk
		a.mu.Unlock()
		if m.Method == "" || len(m.ID) == 0 {
			continue
		}
		if answer == nil {
			a.sendMessage(map[string]any{"id": m.ID, "error": map[string]any{"code": -32601, "message": "not here"}})
		} else if result := answer(m.Method, m.Params); result != nil {
			a.sendMessage(map[string]any{"id": m.ID, "result": result})
		}
	}
}

// answerWith sets what answers the questions that come from now on.
func (a *agent) answerWith(onAsk func(method string, params json.RawMessage) any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.onAsk = onAsk
}

func (a *agent) sendMessage(m map[string]any) {
	m["jsonrpc"] = "2.0"
	if b, err := json.Marshal(m); err == nil {
		a.lines <- b
	}
}

// rpcError is an error of the protocol that an agent gets.
type rpcError struct {
	Code    int
	Message string
}

func (e *rpcError) Error() string { return fmt.Sprintf("%d %s", e.Code, e.Message) }

// paramsOf returns the params of a request: in the modern era with what each declares.
func (a *agent) paramsOf(params any) any {
	if !a.modern {
		return orEmpty(params)
	}
	members, _ := params.(map[string]any)
	all := maps.Clone(members)
	if all == nil {
		all = map[string]any{}
	}
	meta := map[string]any{"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": a.capabilities}
	own, _ := members["_meta"].(map[string]any)
	maps.Copy(meta, own)
	all["_meta"] = meta
	return all
}

// callMethod sends a request and waits for its answer. When ctx ends, the agent takes the request back.
func (a *agent) callMethod(ctx context.Context, method string, params any) (json.RawMessage, error) {
	a.mu.Lock()
	a.lastID++
	id := fmt.Sprint(a.lastID)
	waiting := make(chan message, 1)
	a.pending[id] = waiting
	if a.over {
		close(waiting)
	}
	a.mu.Unlock()
	a.sendMessage(map[string]any{"id": json.RawMessage(id), "method": method, "params": a.paramsOf(params)})
	select {
	case m, ok := <-waiting:
		switch {
		case !ok:
			return nil, io.ErrUnexpectedEOF
		case m.Error != nil:
			return nil, &rpcError{m.Error.Code, m.Error.Message}
		}
		return m.Result, nil
	case <-ctx.Done():
		a.sendMessage(map[string]any{"method": "notifications/cancelled", "params": map[string]any{"requestId": json.RawMessage(id)}})
		return nil, ctx.Err()
	}
}

// listenFor has an agent of the modern era listen to what the filter names, until the function that it returns is called. Of the other era it does nothing.
func (a *agent) listenFor(s *stage, filter map[string]any) (end func()) {
	if !a.modern {
		return func() {}
	}
	ctx, cancel := context.WithCancel(s.ctx)
	s.runBeside(func() { _, _ = a.callMethod(ctx, "subscriptions/listen", map[string]any{"notifications": filter}) })
	s.settleAll()
	return cancel
}

// notesOf returns the notifications of a method that have come.
func (a *agent) notesOf(method string) (list []message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, m := range a.notes {
		if m.Method == method {
			list = append(list, m)
		}
	}
	return list
}

// countAsked returns how many questions have come.
func (a *agent) countAsked() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.asked)
}

// listNames returns one member of all items of a list, sorted.
func (a *agent) listNames(s *stage, method, list, member string) []string {
	ctx, cancel := context.WithTimeout(s.ctx, time.Minute)
	defer cancel()
	result, err := a.callMethod(ctx, method, nil)
	if err != nil {
		s.reportFinding("I24", "", "%s of the agent %s ended with %v", method, a.name, err)
		return nil
	}
	var all map[string]json.RawMessage
	_ = json.Unmarshal(result, &all)
	var items []map[string]any
	_ = json.Unmarshal(all[list], &items)
	names := make([]string, 0, len(items))
	for _, item := range items {
		names = append(names, fmt.Sprint(item[member]))
	}
	slices.Sort(names)
	return names
}
