package differential

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// lineMirror is the mirror on lines.
type lineMirror struct {
	mirror
	mu      sync.Mutex // guards out and waiting
	out     io.Writer
	waiting map[string]chan []byte
	asked   atomic.Int64
	answers atomic.Pointer[[]byte]
}

// serveLines serves until in ends.
func serveLines(modern bool, in io.Reader, out io.Writer) {
	s := &lineMirror{mirror: mirror{modern}, out: out, waiting: map[string]chan []byte{}}
	lines := bufio.NewReaderSize(in, 1<<20)
	var all sync.WaitGroup
	defer all.Wait()
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		m, problem := readMessage(line)
		switch {
		case problem != nil:
			s.write(reply(m.ID, nil, problem))
		case m.Method == "" && m.ID != nil:
			s.mu.Lock()
			ch := s.waiting[string(m.ID)]
			delete(s.waiting, string(m.ID))
			s.mu.Unlock()
			if ch != nil {
				ch <- line
			}
		case m.ID == nil:
		default:
			if m.Method == "initialize" {
				answers := bytes.Clone(rawjson.Member(m.Params, "capabilities"))
				s.answers.Store(&answers)
			}
			all.Go(func() { s.handle(m) })
		}
	}
}

func (s *lineMirror) write(line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.out.Write(append(line, '\n')) // a client that has gone reads nothing
}

func (s *lineMirror) handle(m message) {
	c := &conversation{method: m.Method, params: m.Params, notify: func(method string, params []byte) {
		s.write(notification(method, params))
	}, ask: func(method string, params []byte) []byte {
		id := fmt.Sprintf("%q", fmt.Sprint("q", s.asked.Add(1)))
		ch := make(chan []byte, 1)
		s.mu.Lock()
		s.waiting[id] = ch
		s.mu.Unlock()
		s.write(question(id, method, params))
		return heard(<-ch)
	}}
	if answers := s.answers.Load(); answers != nil {
		c.answers = *answers
	}
	result, e := s.answer(c)
	s.write(reply(m.ID, result, e))
}

func notification(method string, params []byte) []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params)
}

func question(id, method string, params []byte) []byte {
	if len(params) == 0 {
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q}`, id, method)
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, id, method, params)
}

// heard is what the mirror shows of an answer: the result as it came, or the error.
func heard(body []byte) []byte {
	if result := rawjson.Member(bytes.TrimSpace(body), "result"); result != nil {
		return result
	}
	return rawjson.Member(bytes.TrimSpace(body), "error")
}

// beMirror makes this process a mirror on lines, if it was started as one.
func beMirror() bool {
	if len(os.Args) != 3 || os.Args[1] != "differential-mirror" {
		return false
	}
	serveLines(os.Args[2] == "modern", os.Stdin, os.Stdout)
	return true
}

// webMirror is the mirror over streamable HTTP.
type webMirror struct {
	mirror
	mu       sync.Mutex
	sessions map[string][]byte // what each client can be asked
	waiting  map[string]chan []byte
	asked    atomic.Int64
}

func newWebMirror(modern bool) *webMirror {
	return &webMirror{mirror: mirror{modern}, sessions: map[string][]byte{}, waiting: map[string]chan []byte{}}
}

func (s *webMirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	m, problem := readMessage(body)
	id := r.Header.Get("Mcp-Session-Id")
	s.mu.Lock()
	answers, known := s.sessions[id]
	s.mu.Unlock()
	switch {
	case problem != nil:
		writeJSON(w, http.StatusBadRequest, reply(m.ID, nil, problem))
		return
	case m.Method == "" || m.ID == nil:
		if m.Method == "" {
			s.mu.Lock()
			ch := s.waiting[string(m.ID)]
			delete(s.waiting, string(m.ID))
			s.mu.Unlock()
			if ch != nil {
				ch <- body
			}
		}
		w.WriteHeader(http.StatusAccepted)
		return
	case s.modern:
	case m.Method == "initialize":
		id = fmt.Sprint("session", s.asked.Add(1))
		s.mu.Lock()
		s.sessions[id] = bytes.Clone(rawjson.Member(m.Params, "capabilities"))
		s.mu.Unlock()
		w.Header().Set("Mcp-Session-Id", id)
	case !known:
		w.WriteHeader(http.StatusNotFound)
		return
	}
	began := false
	send := func(b []byte) {
		if !began {
			began = true
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
		}
		_, _ = fmt.Fprintf(w, "data: %s\n\n", b)
		_ = http.NewResponseController(w).Flush()
	}
	c := &conversation{method: m.Method, params: m.Params, answers: answers, notify: func(method string, params []byte) {
		send(notification(method, params))
	}, ask: func(method string, params []byte) []byte {
		id := fmt.Sprintf("%q", fmt.Sprint("q", s.asked.Add(1)))
		ch := make(chan []byte, 1)
		s.mu.Lock()
		s.waiting[id] = ch
		s.mu.Unlock()
		send(question(id, method, params))
		select {
		case b := <-ch:
			return heard(b)
		case <-r.Context().Done():
			return nil
		}
	}}
	result, e := s.answer(c)
	b := reply(m.ID, result, e)
	if began || hashOf(string(b))%3 == 0 && !strings.ContainsAny(string(b), "\r\n") {
		send(b)
		return
	}
	status := http.StatusOK
	if s.modern && e != nil && bytes.Contains(e, []byte(`"code":-32601`)) {
		status = http.StatusNotFound
	}
	writeJSON(w, status, b)
}

func writeJSON(w http.ResponseWriter, status int, b []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(b)
}
