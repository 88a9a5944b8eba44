package client_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"
)

// openStream opens a link over stdio: one goroutine reads, one writes, so that a server that does not read holds up nobody.
func (l *plainLink) openStream(ctx context.Context) error {
	p := l.client
	if p.server.URL != "" {
		return nil
	}
	stream, err := p.server.Open(ctx)
	if err != nil {
		return err
	}
	queue := make(chan string, 100)
	l.end = func() { _ = stream.Close() }
	l.send = func(ctx context.Context, _, line string) error {
		select {
		case queue <- line + "\n":
			return nil
		case <-l.done:
			return errors.New("the connection has ended")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	go func() {
		defer l.over()
		lines := bufio.NewScanner(stream)
		lines.Buffer(nil, 8<<20)
		for lines.Scan() {
			l.handle(lines.Text())
		}
	}()
	go func() {
		for {
			select {
			case line := <-queue:
				if _, err := io.WriteString(stream, line); err != nil {
					go l.over()
					return
				}
			case <-l.done:
				return
			}
		}
	}()
	return nil
}

// openSession makes a link over HTTP. Its session begins with the answer to initialize.
func (l *plainLink) openSession(context.Context) error {
	l.send = l.post
	l.end = func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if req := l.request(ctx, http.MethodDelete, ""); req.Header.Get("Mcp-Session-Id") != "" {
			if resp, err := l.client.server.HTTP.Do(req); err == nil {
				_ = resp.Body.Close()
			}
		}
	}
	return nil
}

func (l *plainLink) request(ctx context.Context, method, body string) *http.Request {
	req, _ := http.NewRequestWithContext(ctx, method, l.client.server.URL, strings.NewReader(body))
	l.mu.Lock()
	session := l.session
	l.mu.Unlock()
	if session != "" && !(l.client.slip == "no session header" && method == http.MethodPost) {
		req.Header.Set("Mcp-Session-Id", session)
		req.Header.Set("Mcp-Protocol-Version", "2025-06-18")
	}
	if l.client.slip == "no version header" {
		req.Header.Del("Mcp-Protocol-Version")
	}
	if req.Header.Set("Accept", "application/json, text/event-stream"); l.client.slip == "wrong Accept" {
		req.Header.Set("Accept", "application/json")
	}
	if method == http.MethodGet {
		req.Header.Set("Accept", "text/event-stream")
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	return req
}

// post sends a message. The answer of a request is read in a goroutine, until the context of the request ends.
func (l *plainLink) post(ctx context.Context, id, line string) error {
	answered := make(chan error, 1)
	go func() {
		resp, err := l.client.server.HTTP.Do(l.request(ctx, http.MethodPost, line))
		if answered <- err; err != nil {
			if id != "" {
				l.fail(id, err.Error())
			}
			return
		}
		defer func() { _ = resp.Body.Close() }()
		if s := resp.Header.Get("Mcp-Session-Id"); s != "" {
			l.mu.Lock()
			l.session = s
			l.mu.Unlock()
		}
		if l.checkStatus(resp) && id != "" {
			l.readBody(resp)
		}
		if id != "" {
			l.fail(id, resp.Status)
		}
	}()
	select {
	case err := <-answered:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// checkStatus ends the link for a session that the server does not know any more.
func (l *plainLink) checkStatus(resp *http.Response) bool {
	if resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusBadRequest {
		if l.client.slip == "ignores 404" {
			return false
		}
		go l.over()
	}
	return resp.StatusCode < 300
}

// fail ends the request with an id, if it is still open.
func (l *plainLink) fail(id, why string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if answer := l.pending[id]; answer != nil {
		delete(l.pending, id)
		answer <- plainAnswer{Error: &struct{ Message string }{why}}
	}
}

// readBody reads one JSON document, or events.
func (l *plainLink) readBody(resp *http.Response) {
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 8<<20)
	for lines.Scan() {
		line := strings.TrimPrefix(lines.Text(), "data:")
		l.handle(strings.TrimSpace(line))
	}
}

// listen keeps the stream open on which the server says what nobody has asked.
func (l *plainLink) listen() {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		<-l.done
		cancel()
	}()
	for !l.isOver() {
		resp, err := l.client.server.HTTP.Do(l.request(ctx, http.MethodGet, ""))
		if err == nil {
			if resp.StatusCode < 300 {
				l.readBody(resp)
			}
			_ = resp.Body.Close()
		}
		select {
		case <-l.done:
		case <-time.After(time.Second):
		}
	}
}
