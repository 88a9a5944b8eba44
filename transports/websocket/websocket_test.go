package websocket_test

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gorilla "github.com/gorilla/websocket"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
	"github.com/mcpvisor/mcpvisor/transports/websocket"
)

// dialSocket opens a connection that ends with the test.
func dialSocket(t *testing.T, cfg websocket.Config) (transports.Conn, *transporttest.Recorder,
	*transports.Error) {
	t.Helper()
	if cfg.Client == nil {
		cfg.Client = conntest.OwnClient(t)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := &transporttest.Recorder{}
	c, err := websocket.New(cfg).Dial(ctx, r)
	if err != nil {
		var e *transports.Error
		if !errors.As(err, &e) {
			t.Fatalf("Dial: %v, which is no *Error", err)
		}
		return nil, r, e
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return c, r, nil
}

// rawServer serves WebSockets by hand.
func rawServer(t *testing.T, serve func(*rawSocket)) string {
	t.Helper()
	s := conntest.SilenceErrorLog(httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\n")
		_ = upgradeHeader(r).Write(conn)
		_, _ = io.WriteString(conn, "\r\n")
		serve(&rawSocket{t: t, Conn: conn, r: bufio.NewReader(rw)})
	})))
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

func TestWebSocketOffersTheSubprotocolMCP(t *testing.T) {
	for name, c := range map[string]struct {
		server []string
		other  http.Header
		want   string // part of the error, empty for a connection
	}{
		"a server that selects it":      {server: []string{"other", "mcp"}},
		"a server that selects nothing": {},
		"a server that selects another": {other: http.Header{"Sec-Websocket-Protocol": {"graphql-ws"}},
			want: "wants to speak the subprotocol graphql-ws and not mcp"},
	} {
		t.Run(name, func(t *testing.T) {
			var offered atomic.Pointer[string]
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				o := r.Header.Get("Sec-WebSocket-Protocol")
				offered.Store(&o)
				u := gorilla.Upgrader{Subprotocols: c.server}
				if conn, err := u.Upgrade(w, r, c.other); err == nil {
					defer func() { _ = conn.Close() }()
					_, _, _ = conn.ReadMessage()
				}
			}))
			t.Cleanup(s.Close)
			_, _, err := dialSocket(t, websocket.Config{URL: "ws" + strings.TrimPrefix(s.URL, "http")})
			switch {
			case *offered.Load() != "mcp":
				t.Errorf("the client offered %q, want mcp", *offered.Load())
			case c.want == "" && err != nil:
				t.Errorf("Dial: %v", err)
			case c.want != "" && (err == nil || err.Class != messages.ClassProtocol || !strings.Contains(err.Text, c.want)):
				t.Errorf("Dial: %v, want class protocol and %q", err, c.want)
			}
		})
	}
}

func TestWebSocketHandshakeCarriesCredentialsToItsOriginOnly(t *testing.T) {
	stranger := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("another origin was asked for %v, with %v", r.URL, r.Header)
	}))
	t.Cleanup(stranger.Close)
	p := conntest.NewSocketPeer(t)
	inner := p.Server.Config.Handler
	p.Server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != "open sesame" || r.Header.Get("X-Key") != "k" {
			t.Errorf("%v came without its credentials: %v", r.URL, r.Header)
		}
		switch r.URL.Path {
		case "/moved":
			http.Redirect(w, r, "/there", http.StatusFound)
		case "/away":
			http.Redirect(w, r, stranger.URL, http.StatusTemporaryRedirect)
		default:
			inner.ServeHTTP(w, r)
		}
	})
	at := func(path string) websocket.Config {
		return websocket.Config{
			URL:     strings.Replace(p.Server.URL, "http://", "ws://me:open%20sesame@", 1) + path,
			Headers: map[string]string{"X-Key": "k", "Upgrade": "h2c", "Sec-WebSocket-Extensions": "permessage-deflate"},
		}
	}
	if _, _, err := dialSocket(t, at("/moved")); err != nil {
		t.Errorf("a redirect within the origin: %v", err)
	}
	_, _, err := dialSocket(t, at("/away"))
	if err == nil || err.Class != messages.ClassProtocol || !strings.Contains(err.Text, "another origin") {
		t.Errorf("a redirect to another origin: %v", err)
	}
}

func TestWebSocketTranslatesTheStatusOfTheHandshake(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/401":
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="https://a.example/meta", scope="mcp"`)
			w.WriteHeader(http.StatusUnauthorized)
		case "/503":
			w.Header().Set("Retry-After", "17")
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(s.Close)
	_, _, err := dialSocket(t, websocket.Config{URL: s.URL + "/401"})
	if err == nil || err.Class != messages.ClassUnauthorized || err.Challenge == nil || err.Challenge.Scope != "mcp" {
		t.Errorf("401: %+v, want class unauthorized with the challenge", err)
	}
	_, _, err = dialSocket(t, websocket.Config{URL: s.URL + "/503"})
	if err == nil || err.Class != messages.ClassThrottled || err.RetryAfter != 17*time.Second {
		t.Errorf("503: %+v, want class throttled with 17s", err)
	}
}

func TestWebSocketBinaryFramesAreNoise(t *testing.T) {
	url := rawServer(t, func(s *rawSocket) {
		s.write(frameFinal|0x2, 9, `{"b":"in"}`[:9])
		s.text("")
		s.text(`{"n":1}`)
		s.text(` [{"n":2}]`)
		_, _ = s.read()
	})
	c, r, _ := dialSocket(t, websocket.Config{URL: url})
	r.Wait(t, time.Minute, "two messages", func() bool { return len(r.Messages()) == 2 })
	if got := r.NoiseLines(); len(got) != 1 || c.Info().Noise != 1 {
		t.Errorf("noise: %q, counted %d, want the binary frame", got, c.Info().Noise)
	}
}

// The library takes the end of the stream for the end of a message, if the stream ends between two reads or between two
// frames of one message.
func TestWebSocketDoesNotDeliverACutOffMessage(t *testing.T) {
	for name, say := range map[string]func(*rawSocket){
		"within a frame":       func(s *rawSocket) { s.write(frameFinal|frameText, 4096, halfKilobyte) },
		"between two frames":   func(s *rawSocket) { s.write(frameText, 7, `{"a":1}`) },
		"before the payload":   func(s *rawSocket) { s.write(frameFinal|frameText, 7, "") },
		"in a frame's head":    func(s *rawSocket) { _, _ = s.Write([]byte{frameFinal}) },
		"after an odd payload": func(s *rawSocket) { s.write(frameFinal|frameText, 4096, `{"a":1}`) },
	} {
		t.Run(name, func(t *testing.T) {
			url := rawServer(t, say)
			_, r, _ := dialSocket(t, websocket.Config{URL: url})
			r.Wait(t, time.Minute, "Down", func() bool { return len(r.Downs()) > 0 })
			if got := r.Messages(); len(got) > 0 {
				t.Errorf("delivered %.40q", got)
			}
			if e := downOf(t, r); e.Class != messages.ClassNetwork || !strings.Contains(e.Text, "broke the connection") {
				t.Errorf("down: %q %v", e.Class, e)
			}
		})
	}
}

// halfKilobyte is as much as is read at once: what follows it is another read.
var halfKilobyte = `{"a":1}` + strings.Repeat(" ", 505)

func TestWebSocketMessageWithoutAnEndCostsTheConnection(t *testing.T) {
	url := rawServer(t, func(s *rawSocket) {
		first, piece := byte(frameText), strings.Repeat("x", 1<<20)
		for range 80 {
			head := binary.BigEndian.AppendUint64([]byte{first, 127}, uint64(len(piece)))
			if _, err := s.Write(append(head, piece...)); err != nil {
				return
			}
			first = 0
		}
		_, _ = s.read()
	})
	_, r, _ := dialSocket(t, websocket.Config{URL: url, MaxMessage: 1 << 10})
	r.Wait(t, 30*time.Second, "Down", func() bool { return len(r.Downs()) > 0 })
	if e := downOf(t, r); e.Class != messages.ClassProtocol || len(r.OversizedMessages()) != 1 {
		t.Errorf("down: %q %v, oversized %d", e.Class, e, len(r.OversizedMessages()))
	}
}

func TestWebSocketSaysWhyTheServerClosed(t *testing.T) {
	const secret = "closing-secret-1"
	for name, c := range map[string]struct {
		say   func(*rawSocket)
		class messages.Class
		text  string
	}{
		"going away": {closeFrame(1001, "restart"), messages.ClassNetwork, "closed the connection (1001): restart"},
		"no code": {func(s *rawSocket) { s.write(frameFinal|frameClose, 0, "") }, messages.ClassNetwork,
			"closed the connection"},
		"too big":      {closeFrame(1009, ""), messages.ClassProtocol, "over what it was sent (1009)"},
		"later":        {closeFrame(1013, ""), messages.ClassThrottled, "come again later (1013)"},
		"unauthorized": {closeFrame(3000, "not "+secret), messages.ClassUnauthorized, "(3000): not [redacted]"},
		"forbidden":    {closeFrame(3003, ""), messages.ClassForbidden, "forbids this (3003)"},
		"reserved bits": {func(s *rawSocket) { s.write(frameFinal|0x40|frameText, 2, "{}") }, messages.ClassProtocol,
			"sent something that WebSocket does not allow"},
	} {
		t.Run(name, func(t *testing.T) {
			url := rawServer(t, func(s *rawSocket) {
				c.say(s)
				_, _ = s.read()
			})
			_, r, _ := dialSocket(t, websocket.Config{URL: url, Headers: map[string]string{"X-Key": secret}})
			r.Wait(t, time.Minute, "Down", func() bool { return len(r.Downs()) > 0 })
			if e := downOf(t, r); e.Class != c.class || !strings.HasSuffix(e.Text, c.text) {
				t.Errorf("down: %q %q, want %q and …%q", e.Class, e.Text, c.class, c.text)
			}
		})
	}
}

func closeFrame(code uint16, reason string) func(*rawSocket) {
	payload := string(binary.BigEndian.AppendUint16(nil, code)) + reason
	return func(s *rawSocket) { s.write(frameFinal|frameClose, len(payload), payload) }
}

func TestWebSocketHandshakeAsksTheAuthorizer(t *testing.T) {
	p := conntest.NewSocketPeer(t)
	inner := p.Server.Config.Handler
	p.Server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != conntest.NumberedToken(1) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	})
	k := conntest.NewNumberedTokens(1)
	if _, _, err := dialSocket(t, websocket.Config{URL: p.Server.URL, Auth: k}); err != nil {
		t.Errorf("Dial with a token that is refused once: %v", err)
	}
	if n := k.RefusedCalls.Load(); n != 1 {
		t.Errorf("the authorizer was told of %d refusals, want 1", n)
	}
	_, _, err := dialSocket(t, websocket.Config{URL: p.Server.URL, Auth: conntest.NewNumberedTokens(0)})
	if err == nil || err.Class != messages.ClassUnauthorized {
		t.Errorf("Dial with a token that stays refused: %v", err)
	}
}
