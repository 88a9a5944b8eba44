package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/test/chaos/client"
)

// plain is a small client of the legacy era as an engineer writes it by hand, over stdio and HTTP. slip names the one thing that it does
// wrong; without one it passes every day.
type plain struct {
	server *client.Server
	slip   string
	// queue is what the slip "one lock" takes all calls of all servers through.
	queue chan struct{}

	// token is held by who connects. The fields below are guarded by mu, which nobody holds while they wait.
	token    chan struct{}
	mu       sync.Mutex
	link     *plainLink
	closed   bool
	failures int
	next     time.Time
	nextID   int
	tools    []string
}

// plainLink is one connection, or one session over HTTP.
type plainLink struct {
	client *plain
	send   func(ctx context.Context, id, line string) error
	end    func()
	done   chan struct{}
	once   sync.Once

	mu       sync.Mutex
	pending  map[string]chan plainAnswer
	order    []string
	progress map[string]func(string)
	last     func(string)
	session  string
}

type plainAnswer struct {
	Result json.RawMessage
	Error  *struct{ Message string }
}

func dialPlain(slip string) client.Dial {
	// What all clients of a day share is made by the first of them, inside of its bubble.
	queue := sync.OnceValue(func() chan struct{} { return make(chan struct{}, 1) })
	return func(ctx context.Context, s *client.Server) (client.Client, error) {
		p := &plain{queue: queue(), server: s, slip: slip, token: make(chan struct{}, 1)}
		_, err := p.connect(ctx)
		if err != nil && p.closed {
			return nil, err
		}
		return p, nil
	}
}

// connect returns the link that stands, or makes one: one at a time, and after a failure not before its wait is over.
func (p *plain) connect(ctx context.Context) (*plainLink, error) {
	select {
	case p.token <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-p.token }()
	p.mu.Lock()
	link, closed, wait := p.link, p.closed, time.Until(p.next)
	gaveUp := p.slip == "gives up" && p.failures >= 3 || p.slip == "never reconnects" && link != nil && link.isOver()
	p.mu.Unlock()
	switch {
	case closed:
		return nil, errors.New("closed")
	case gaveUp:
		return nil, errors.New("the connection is lost")
	case link != nil && !link.isOver():
		return link, nil
	case wait > 0 && p.slip != "storm":
		return nil, fmt.Errorf("the next attempt is in %s", wait)
	}
	link, err := p.open(ctx)
	if err != nil && p.slip == "storm" {
		for i := 0; i < 200 && err != nil && ctx.Err() == nil; i++ {
			link, err = p.open(ctx)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.next = time.Now().Add(min(100*time.Millisecond<<min(p.failures, 6), 5*time.Second))
		p.failures++
		return nil, err
	}
	if p.closed {
		go link.over()
		return nil, errors.New("closed")
	}
	p.link, p.failures = link, 0
	if p.slip != "list of an old connection" {
		p.tools = nil
	}
	return link, nil
}

// open makes a link and greets its server.
func (p *plain) open(ctx context.Context) (*plainLink, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	l := &plainLink{client: p, done: make(chan struct{}), pending: map[string]chan plainAnswer{}, progress: map[string]func(string){}}
	err := l.openStream(ctx)
	if p.server.URL != "" {
		err = l.openSession(ctx)
	}
	if err != nil {
		return nil, err
	}
	result, err := l.ask(ctx, "initialize", `{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"plain","version":"1"}}`, nil)
	if err == nil && !strings.Contains(string(result), `"2025-`) {
		err = errors.New("another version")
	}
	if err == nil && p.slip != "no initialized" {
		err = l.send(ctx, "", `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	}
	if err != nil {
		l.over()
		return nil, err
	}
	if p.server.URL != "" {
		go l.listen()
	}
	if p.slip == "goroutine" {
		go func() { <-make(chan struct{}) }()
	}
	return l, nil
}

func (l *plainLink) isOver() bool {
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// over ends a link; who waits for an answer learns it.
func (l *plainLink) over() {
	l.once.Do(func() {
		close(l.done)
		if l.end != nil && l.client.slip != "does not close" {
			l.end()
		}
	})
}

// ask makes a request and waits for its answer.
func (l *plainLink) ask(ctx context.Context, method, params string, progress func(string)) (json.RawMessage, error) {
	p := l.client
	p.mu.Lock()
	p.nextID++
	number := p.nextID
	if p.slip == "id reuse" {
		number %= 16
	}
	p.mu.Unlock()
	id := fmt.Sprint(number)
	if progress != nil {
		params = strings.TrimSuffix(params, "}") + `,"_meta":{"progressToken":"t` + id + `"}}`
	}
	answer := make(chan plainAnswer, 1)
	l.mu.Lock()
	l.pending[id], l.order = answer, append(l.order, id)
	if progress != nil {
		l.progress[`"t`+id+`"`], l.last = progress, progress
	}
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if p.slip == "late answer" {
			return
		}
		delete(l.pending, id)
		delete(l.progress, `"t`+id+`"`)
		l.order = slices.DeleteFunc(l.order, func(s string) bool { return s == id })
	}()
	wait := ctx
	if p.slip == "no deadline" && method == "tools/call" {
		wait = context.Background()
	}
	err := l.send(wait, id, `{"jsonrpc":"2.0","id":`+id+`,"method":"`+method+`","params":`+params+`}`)
	if err == nil {
		select {
		case a := <-answer:
			if a.Error != nil {
				return nil, errors.New(a.Error.Message)
			}
			return a.Result, nil
		case <-l.done:
			return nil, errors.New("the connection has ended")
		case <-wait.Done():
			err = wait.Err()
		}
	}
	if wait.Err() != nil && method != "initialize" && p.slip != "no cancel" {
		if p.slip == "cancel of a text" {
			id = `"` + id + `"`
		}
		late, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer stop()
		_ = l.send(late, "", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":`+id+`}}`)
	}
	return nil, err
}

// handle takes a message of the server.
func (l *plainLink) handle(line string) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct {
			ProgressToken json.RawMessage
			Message       string
		}
		plainAnswer
	}
	if json.Unmarshal([]byte(line), &m) != nil {
		return
	}
	p := l.client
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case m.Method == "notifications/tools/list_changed":
		if p.slip != "list not refreshed" {
			p.mu.Lock()
			p.tools = nil
			p.mu.Unlock()
		}
	case m.Method == "notifications/progress":
		tell := l.progress[string(m.Params.ProgressToken)]
		if p.slip == "foreign progress" {
			tell = l.last
		}
		if tell != nil {
			tell(m.Params.Message)
		}
	case m.Method != "":
		if len(m.ID) > 0 {
			go func() { _ = l.send(context.Background(), "", `{"jsonrpc":"2.0","id":`+string(m.ID)+`,"result":{}}`) }()
		}
	default:
		id := string(m.ID)
		if p.slip == "late answer" && len(l.order) > 0 {
			id = l.order[0] // answers come in the order of the requests, the engineer believes
			l.order = l.order[1:]
		}
		if answer := l.pending[id]; answer != nil {
			delete(l.pending, id)
			answer <- m.plainAnswer
		}
	}
}

// Tools implements client.Client: it keeps the list until the server says that it has changed.
func (p *plain) Tools(ctx context.Context) ([]string, error) {
	p.mu.Lock()
	known := p.tools
	p.mu.Unlock()
	if known != nil {
		return known, nil
	}
	l, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	cursor := "{}"
	for range 100 {
		result, err := l.ask(ctx, "tools/list", cursor, nil)
		if err != nil {
			return nil, err
		}
		var page struct {
			Tools      []struct{ Name string }
			NextCursor *string
		}
		if err := json.Unmarshal(result, &page); err != nil {
			return nil, err
		}
		for _, t := range page.Tools {
			if !slices.Contains(names, t.Name) {
				names = append(names, t.Name)
			}
		}
		if page.NextCursor == nil || *page.NextCursor == "" || p.slip == "first page" {
			break
		}
		c, _ := json.Marshal(map[string]string{"cursor": *page.NextCursor})
		cursor = string(c)
	}
	if p.slip == "list not refreshed" || p.slip == "list of an old connection" {
		p.mu.Lock()
		p.tools = names
		p.mu.Unlock()
	}
	return names, nil
}

// Call implements client.Client.
func (p *plain) Call(ctx context.Context, tool string, arguments map[string]any) (string, error) {
	return p.CallWithProgress(ctx, tool, arguments, nil)
}

// CallWithProgress implements client.ProgressCaller.
func (p *plain) CallWithProgress(ctx context.Context, tool string, arguments map[string]any, progress func(string)) (string, error) {
	if p.slip == "one lock" {
		select {
		case p.queue <- struct{}{}:
			defer func() { <-p.queue }()
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	text, err := p.callOnce(ctx, tool, arguments, progress)
	if err != nil && p.slip == "repeats" && ctx.Err() == nil {
		return p.callOnce(ctx, tool, arguments, progress)
	}
	return text, err
}

func (p *plain) callOnce(ctx context.Context, tool string, arguments map[string]any, progress func(string)) (string, error) {
	l, err := p.connect(ctx)
	if err != nil {
		return "", err
	}
	a, _ := json.Marshal(arguments)
	result, err := l.ask(ctx, "tools/call", `{"name":"`+tool+`","arguments":`+string(a)+`}`, progress)
	if err != nil {
		return "", err
	}
	var r struct{ Content []struct{ Text string } }
	if err := json.Unmarshal(result, &r); err != nil || len(r.Content) == 0 {
		return "", errors.New("the result holds no text")
	}
	return r.Content[0].Text, nil
}

// NotSent implements client.OutcomeKnower in the client that says too much.
func (p *plain) NotSent(err error) bool {
	return p.slip == "says not sent" && strings.Contains(err.Error(), "the connection has ended")
}

// Close implements client.Client.
func (p *plain) Close() error {
	p.mu.Lock()
	l := p.link
	p.closed = true
	p.mu.Unlock()
	if l != nil {
		l.over()
	}
	return nil
}
