package differential

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// An exchange is what a client got for one request: the answer, and what came before it.
type exchange struct {
	beside []string
	answer []byte
}

// A client sends bytes as they are, and shows bytes as they came.
type client interface {
	// exchange sends a message and waits for the answer to it. Questions are answered meanwhile.
	exchange(q request, body string) (exchange, error)
	close()
}

const patience = 20 * time.Second

// answerTo answers a question of a server: what is answered depends on the question.
func answerTo(m message) []byte {
	odd := newRandom(hashOf(m.Method + string(m.Params)))
	if odd.IntN(6) == 0 {
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-1,"message":"no, \u00e9","data":%s}}`, m.ID, odd.value(2))
	}
	result := `{"roots":[{"uri":"file:///é","name":"x","x-new":1.0}]}`
	switch m.Method {
	case "elicitation/create":
		result = `{"action":` + one(odd, `"accept","content":{"n":1.50,"t":"\u00e9"}`, `"decline"`, `"cancel"`) + `,"x-new":` + odd.value(2).String() + `}`
	case "sampling/createMessage":
		result = `{"role":"assistant","model":"é","content":{"type":"text","text":"\u00e9","x-new":` + odd.value(2).String() + `}}`
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// besideText shows a notification or a question without what belongs to one hop.
func besideText(m message) string {
	params := m.Params
	if token := rawjson.Member(params, "progressToken"); token != nil {
		params = bytes.Replace(params, append([]byte(`"progressToken":`), token...), []byte(`"progressToken":T`), 1)
	}
	return m.Method + " " + string(params)
}

const opening = `{"jsonrpc":"2.0","id":"begin","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + abilities +
	`,"clientInfo":{"name":"test","version":"1"}}}`

// lineClient is a client on lines.
type lineClient struct {
	out   io.WriteCloser
	lines chan []byte
	end   func()
}

func newLineClient(in io.Reader, out io.WriteCloser, modern bool, end func()) (*lineClient, error) {
	c := &lineClient{out: out, lines: make(chan []byte, 100), end: end}
	go func() { // it ends with in
		defer close(c.lines)
		r := bufio.NewReaderSize(in, 1<<20)
		for {
			line, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			c.lines <- line
		}
	}()
	if modern {
		return c, nil
	}
	_, err := c.exchange(request{id: `"begin"`}, opening)
	if err == nil {
		_, err = io.WriteString(out, `{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n")
	}
	return c, err
}

func (c *lineClient) exchange(_ request, body string) (e exchange, err error) {
	if _, err := io.WriteString(c.out, body+"\n"); err != nil {
		return e, err
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		select {
		case <-late.C:
			return e, errors.New("no answer came")
		case line, ok := <-c.lines:
			if !ok {
				return e, errors.New("the connection ended")
			}
			m, answered := e.take(line)
			if answered {
				return e, nil
			}
			if m.ID != nil {
				if _, err := c.out.Write(append(answerTo(m), '\n')); err != nil {
					return e, err
				}
			}
		}
	}
}

// take notes a message; true if it is the answer. Notices that belong to no request are left out, because they come at any time.
func (e *exchange) take(body []byte) (m message, answered bool) {
	body = bytes.Clone(bytes.TrimSpace(body))
	m = message{ID: rawjson.Member(body, "id"), Params: rawjson.Member(body, "params")}
	m.Method, _ = rawjson.Text(rawjson.Member(body, "method"))
	if m.Method == "" {
		e.answer = body
		return m, true
	}
	if !strings.HasSuffix(m.Method, "list_changed") {
		e.beside = append(e.beside, besideText(m))
	}
	return m, false
}

func (c *lineClient) close() {
	_ = c.out.Close()
	c.end()
}

// webClient is a client over streamable HTTP.
type webClient struct {
	http    *http.Client
	url     string
	session string
	modern  bool
}

func newWebClient(url string, modern bool) (*webClient, error) {
	c := &webClient{http: &http.Client{Transport: &http.Transport{}}, url: url, modern: modern}
	if modern {
		return c, nil
	}
	res, err := c.post(context.Background(), request{}, opening)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if c.session = res.Header.Get("Mcp-Session-Id"); c.session == "" {
		return nil, fmt.Errorf("initialize: %s", res.Status)
	}
	return c, c.tell(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

func (c *webClient) post(ctx context.Context, q request, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if c.modern {
		for name, value := range q.headers(body) {
			r.Header.Set(name, value)
		}
	} else if c.session != "" {
		r.Header.Set("Mcp-Session-Id", c.session)
		r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	}
	return c.http.Do(r)
}

// tell sends what has no answer.
func (c *webClient) tell(body string) error {
	res, err := c.post(context.Background(), request{}, body)
	if err == nil {
		_ = res.Body.Close()
	}
	return err
}

func (c *webClient) exchange(q request, body string) (e exchange, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	res, err := c.post(ctx, q, body)
	if err != nil {
		return e, err
	}
	defer res.Body.Close()
	if !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		b, err := io.ReadAll(res.Body)
		e.take(b)
		return e, err
	}
	events := bufio.NewReaderSize(res.Body, 1<<20)
	for {
		line, err := events.ReadBytes('\n')
		if err != nil {
			return e, fmt.Errorf("the stream ended without an answer: %w", err)
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			continue
		}
		m, answered := e.take(data)
		if answered {
			_, err := io.Copy(io.Discard, res.Body)
			return e, err
		}
		if m.ID != nil {
			if err := c.tell(string(answerTo(m))); err != nil {
				return e, err
			}
		}
	}
}

func (c *webClient) close() { c.http.CloseIdleConnections() }
