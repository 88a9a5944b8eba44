package conntest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

// WebPeer is the suite's peer behind an HTTP server.
type WebPeer struct {
	script transporttest.Script
	Server *httptest.Server
	// AsEvents lets answers be event streams instead of JSON.
	AsEvents bool

	// ctx ends with the test.
	ctx context.Context

	mu      sync.Mutex
	streams map[string]*Stream
	changed chan struct{} // closed and replaced when streams changes
}

// Stream is one open event stream of the peer.
type Stream struct {
	ctx   context.Context // ends with it
	queue chan []byte
}

// Send queues an event; nil is the peer's death, which so comes after what was written before it.
func (s *Stream) Send(msg []byte) error {
	select {
	case s.queue <- msg:
		return nil
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// NewWebPeer starts a peer that ends with the test.
func NewWebPeer(t *testing.T, handler func(*WebPeer) http.Handler) *WebPeer {
	p := &WebPeer{streams: map[string]*Stream{}, changed: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.Background())
	p.ctx = ctx
	p.Server = SilenceErrorLog(httptest.NewUnstartedServer(handler(p)))
	p.Server.Start()
	t.Cleanup(func() {
		cancel()
		p.Server.CloseClientConnections()
		p.Server.Close()
	})
	return p
}

// CutConnections ends the peer as a crash would: no new connection, and the old ones are cut. What was written before is out.
func (p *WebPeer) CutConnections() {
	_ = p.Server.Listener.Close()
	go p.Server.CloseClientConnections() // waits for the handlers, one of which is the caller
}

// serveStream serves an event stream until it is closed.
func (p *WebPeer) serveStream(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	s := &Stream{ctx: ctx, queue: make(chan []byte, 16)}
	p.mu.Lock()
	id := strconv.Itoa(len(p.streams) + 1)
	p.streams[id] = s
	close(p.changed)
	p.changed = make(chan struct{})
	p.mu.Unlock()

	w.Header().Set("Content-Type", "text/event-stream")
	if r.URL.Path == "/sse" {
		_, _ = fmt.Fprintf(w, "event: endpoint\ndata: /messages?session=%s\n\n", id)
	}
	w.(http.Flusher).Flush()
	for {
		select {
		case msg := <-s.queue:
			if msg == nil {
				p.CutConnections()
				panic(http.ErrAbortHandler)
			}
			_ = writeEvent(w, msg)
		case <-ctx.Done():
			return
		}
	}
}

// AwaitStream returns an open stream by its id, or any. It waits until there is one.
func (p *WebPeer) AwaitStream(id string) (*Stream, error) {
	for deadline := time.After(10 * time.Second); ; {
		p.mu.Lock()
		changed := p.changed
		for i, s := range p.streams {
			if s.ctx.Err() == nil && (id == "" || id == i) {
				p.mu.Unlock()
				return s, nil
			}
		}
		p.mu.Unlock()
		select {
		case <-changed:
		case <-p.ctx.Done():
			return nil, p.ctx.Err()
		case <-deadline:
			return nil, errors.New("nobody has opened a stream")
		}
	}
}

func writeEvent(w io.Writer, msg []byte) error {
	_, err := fmt.Fprintf(w, "event: message\ndata: %s\n\n", msg)
	w.(http.Flusher).Flush()
	return err
}

// isRequest reports whether a message wants an answer: it has both an id and a method. Streamable HTTP answers all else with 202.
func isRequest(msg []byte) bool {
	var e struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	return json.Unmarshal(msg, &e) == nil && e.ID != nil && e.Method != ""
}

// webPort is the peer's end of one exchange.
type webPort struct {
	p     *WebPeer
	write func([]byte) error
}

func (o *webPort) Write(msg []byte) error { return o.write(msg) }

// Push sends a message without being asked, on the stream that the client keeps open for it. It waits for that stream.
func (o *webPort) Push(msg []byte) error {
	s, err := o.p.AwaitStream("")
	if err != nil {
		return err
	}
	return s.Send(msg)
}

func (o *webPort) Noise([]byte) error { return errors.New("no such thing") }

func (o *webPort) Die() { o.p.CutConnections() }

// StreamableHandler is the handler of streamable HTTP.
func StreamableHandler(p *WebPeer) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet:
			p.serveStream(w, r)
		case http.MethodPost:
			msg, err := io.ReadAll(r.Body)
			if err != nil {
				return
			}
			if !isRequest(msg) {
				p.script.Play(r.Context(), &webPort{p: p}, msg)
				w.WriteHeader(http.StatusAccepted)
				return
			}
			port := &webPort{p: p}
			var one [][]byte
			port.write = func(b []byte) error {
				one = append(one, b)
				return nil
			}
			if p.AsEvents || hasNotifications(msg) {
				w.Header().Set("Content-Type", "text/event-stream")
				w.WriteHeader(http.StatusOK)
				port.write = func(b []byte) error { return writeEvent(w, b) }
			}
			done := p.playMessage(r.Context(), port, msg)
			<-done
			if len(one) > 0 {
				w.Header().Set("Content-Type", "application/json")
				_, _ = w.Write(one[len(one)-1])
			}
		default:
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	})
}

// playMessage plays msg. The channel is closed as soon as the answer to the request stands, so that a push after it does not
// hold up the response.
func (p *WebPeer) playMessage(ctx context.Context, port *webPort, msg []byte) <-chan struct{} {
	var e struct {
		Method string `json:"method"`
	}
	_ = json.Unmarshal(msg, &e)
	done := make(chan struct{})
	if e.Method != "push" {
		p.script.Play(ctx, port, msg)
		close(done)
		return done
	}
	var once sync.Once
	answered := port.write
	port.write = func(b []byte) error {
		err := answered(b)
		once.Do(func() { close(done) })
		return err
	}
	go p.script.Play(p.ctx, port, msg)
	return done
}

// hasNotifications reports whether the peer's script for this method sends messages before its answer, so that the answer
// has to be a stream and not one JSON body.
func hasNotifications(msg []byte) bool {
	var e struct {
		Method string `json:"method"`
	}
	_ = json.Unmarshal(msg, &e)
	return e.Method == "notify" || e.Method == "last-words" || e.Method == "ask"
}

// SSEHandler is the handler of HTTP+SSE: GET /sse and POST /messages.
func SSEHandler(p *WebPeer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sse", p.serveStream)
	mux.HandleFunc("POST /messages", func(w http.ResponseWriter, r *http.Request) {
		msg, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		s, err := p.AwaitStream(r.URL.Query().Get("session"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		w.WriteHeader(http.StatusAccepted)
		go p.script.Play(s.ctx, olderPort{s}, msg)
	})
	return mux
}

// olderPort sends everything on the one stream.
type olderPort struct{ s *Stream }

func (o olderPort) Write(msg []byte) error { return o.s.Send(msg) }

func (o olderPort) Push(msg []byte) error { return o.s.Send(msg) }

func (o olderPort) Noise([]byte) error { return errors.New("no such thing") }

func (o olderPort) Die() { _ = o.s.Send(nil) }

// ListeningTransport is HTTP after its handshake, so that the stream for unasked messages is open.
type ListeningTransport struct{ transports.Transport }

// Dial implements transports.Transport.
func (l ListeningTransport) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	s := &sinkOf{Sink: sink}
	c, err := l.Transport.Dial(ctx, s)
	if err != nil {
		return nil, err
	}
	c.Negotiated("2025-11-25")
	_, err = c.Send(ctx, transports.Message{Method: "notifications/initialized",
		Body: []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)})
	if err != nil {
		s.failed.Store(true)
		_ = c.Close(context.Background())
		return nil, err
	}
	return c, nil
}

// sinkOf keeps the Down of a connection that Dial has not returned from the sink.
type sinkOf struct {
	transports.Sink
	failed atomic.Bool
}

func (s *sinkOf) Down(err error) {
	if !s.failed.Load() {
		s.Sink.Down(err)
	}
}
