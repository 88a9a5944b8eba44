package web_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/internal/conntest"
	"github.com/mcpvisor/mcpvisor/transports/web"
)

// TestRedirects is H9.
func TestRedirects(t *testing.T) {
	var leaked atomic.Int32
	other := conntest.Serve(t, func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		leaked.Add(1)
		t.Errorf("the other origin got %s with %v and %s", r.Method, r.Header, body)
	})
	for _, c := range []struct {
		name, to string // {other} and {self} are URLs
		status   int
		ok       bool
		text     string
	}{
		{"307 here", "/there", 307, true, ""},
		{"308 here", "{self}/there?x=1", 308, true, ""},
		{"307 with other credentials", "http://someone:else@{host}/there", 307, true, ""},
		{"301 here", "/there", 301, false, "into a GET"},
		{"302 here", "/there", 302, false, "into a GET"},
		{"303 here", "/there", 303, false, "into a GET"},
		{"300", "/there", 300, false, "redirect (300)"},
		{"307 elsewhere", "{other}/there", 307, false, "another origin"},
		{"308 elsewhere", "{other}/there?key=" + conntest.Canary, 308, false, "another origin"},
		{"302 elsewhere", "{other}/there", 302, false, "another origin"},
		{"308 to https", "https://{host}/there", 308, false, "another origin"},
		{"307 nowhere", "", 307, false, "nowhere"},
		{"307 to nonsense", "http://%zz", 307, false, "nowhere"},
		{"307 in circles", "/mcp", 307, false, "circles"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var self string
			s := conntest.Serve(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/there" && c.ok {
					if r.Header.Get("X-Api-Key") != conntest.Canary || r.Header.Get("Authorization") != "Bearer "+conntest.Canary {
						t.Error("the credentials did not follow a redirect within the origin")
					}
					conntest.Reply(w, conntest.ReadRequest(r), `"there"`)
					return
				}
				host := strings.TrimPrefix(self, "http://")
				if c.to != "" {
					w.Header().Set("Location",
						strings.NewReplacer("{other}", other.URL, "{self}", self, "{host}", host).Replace(c.to))
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, "moved")
			})
			self = s.URL
			cn := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, s.URL)))
			if c.ok {
				if got := cn.Call("tools/call", `{}`); got != `"there"` {
					t.Errorf("the answer is %s", got)
				}
				return
			}
			_, d, err := cn.TrySend(t.Context(), "tools/call", `{}`)
			if err == nil || err.Class != messages.ClassProtocol || err.Status != c.status ||
				!strings.Contains(err.Error(), c.text) || d == transports.NotWritten {
				t.Errorf("%v, %v", d, err)
			}
		})
	}
	if leaked.Load() > 0 {
		t.Errorf("%d requests left the origin", leaked.Load())
	}
}

// reset makes the close of a connection an RST.
func reset(conn net.Conn) { _ = conn.(*net.TCPConn).SetLinger(0) }

// sendWithLittleTime sends a message that gets no answer, and waits for a moment. A busy machine may not have written it by then: it is
// sent again with more time, as long as that is so.
func sendWithLittleTime(t *testing.T, c *conntest.Client, method, params string) (transports.Delivery, *transports.Error) {
	for within := 50 * time.Millisecond; ; within *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), within)
		_, d, err := c.TrySend(ctx, method, params)
		if cancel(); d != transports.NotWritten || within > conntest.Bound {
			return d, err
		}
	}
}

// TestBrokenConnections is H11: what a network and a broken server do to an exchange, and how far the message got.
func TestBrokenConnections(t *testing.T) {
	head := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	for _, c := range []struct {
		name    string
		handler func(net.Conn)
		class   messages.Class
		text    string
		maybe   bool // MaybeWritten is wanted; otherwise anything but NotWritten
	}{
		{"reset after the request", func(c net.Conn) { conntest.ReadHTTPRequest(c); reset(c) }, messages.ClassNetwork, "broke", true},
		{"closed after the request", func(c net.Conn) { conntest.ReadHTTPRequest(c) }, messages.ClassNetwork, "broke", true},
		{"closed at once", func(net.Conn) {}, messages.ClassNetwork, "", true},
		{"reset in the body", func(c net.Conn) {
			conntest.ReadHTTPRequest(c)
			_, _ = io.WriteString(c, head+"Content-Length: 100\r\n\r\n{\"jsonrpc\"")
			time.Sleep(10 * time.Millisecond)
			reset(c)
		}, messages.ClassNetwork, "broke", false},
		{"body cut off", func(c net.Conn) {
			conntest.ReadHTTPRequest(c)
			_, _ = io.WriteString(c, head+"Content-Length: 100\r\n\r\n{\"jsonrpc\"")
		}, messages.ClassNetwork, "broke", false},
		{"chunks cut off", func(c net.Conn) {
			conntest.ReadHTTPRequest(c)
			_, _ = io.WriteString(c, head+"Transfer-Encoding: chunked\r\n\r\n5\r\n{\"a\":")
		}, messages.ClassNetwork, "broke", false},
		{"black hole", func(c net.Conn) { conntest.ReadHTTPRequest(c); conntest.AwaitClose(c) }, messages.ClassTimeout, "too long", true},
		{"slow head", func(c net.Conn) {
			conntest.ReadHTTPRequest(c)
			for _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\n"); err == nil; {
				_, err = io.WriteString(c, "X: y\r\n")
				time.Sleep(5 * time.Millisecond)
			}
		}, messages.ClassTimeout, "too long", true},
		{"slow body", func(c net.Conn) {
			conntest.ReadHTTPRequest(c)
			for _, err := io.WriteString(c, head+"Content-Length: 1000000\r\n\r\n{"); err == nil; {
				_, err = io.WriteString(c, " ")
				time.Sleep(5 * time.Millisecond)
			}
		}, messages.ClassTimeout, "too long", false},
		{"slow body of an error", func(c net.Conn) {
			conntest.ReadHTTPRequest(c)
			for _, err := io.WriteString(c, "HTTP/1.1 500 No\r\nContent-Length: 1000000\r\n\r\n{"); err == nil; {
				_, err = io.WriteString(c, " ")
				time.Sleep(5 * time.Millisecond)
			}
		}, messages.ClassNetwork, "500", false},
		{"endless head", func(c net.Conn) {
			conntest.ReadHTTPRequest(c)
			for _, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nX: "); err == nil; {
				_, err = io.WriteString(c, strings.Repeat("x", 1<<16))
			}
		}, messages.ClassNetwork, "failed", true},
		{"not HTTP", func(c net.Conn) {
			conntest.ReadHTTPRequest(c) // net/http has another error for an answer that comes before
			_, _ = io.WriteString(c, "220 mail.example.com "+conntest.Canary+"\r\n")
			conntest.AwaitClose(c)
		}, messages.ClassNetwork, "does not speak HTTP", true},
		{"a lot of nothing", func(c net.Conn) {
			conntest.ReadHTTPRequest(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
			for _, err := io.WriteString(c, "{"); err == nil; {
				_, err = io.WriteString(c, strings.Repeat(" ", 1<<16))
			}
		}, messages.ClassProtocol, "over the limit", false},
		{"an event without an end", func(c net.Conn) {
			conntest.ReadHTTPRequest(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
			for _, err := io.WriteString(c, "data: "); err == nil; {
				_, err = io.WriteString(c, strings.Repeat("x", 1<<16))
			}
		}, messages.ClassProtocol, "over the limit", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := conntest.ConfigWithSecrets(t, "http://"+conntest.StartTCPServer(t, c.handler))
			cfg.MaxMessage = 1 << 16
			cfg.Client.Transport.(*http.Transport).MaxResponseHeaderBytes = 1 << 16
			cn := conntest.Dial(t, web.NewHTTP(cfg))
			ctx, cancel := context.WithTimeout(t.Context(), conntest.Bound)
			defer cancel()
			var d transports.Delivery
			var err *transports.Error
			if c.class == messages.ClassTimeout {
				d, err = sendWithLittleTime(t, cn, "tools/call", `{}`)
			} else {
				_, d, err = cn.TrySend(ctx, "tools/call", `{}`)
			}
			if err == nil || err.Class != c.class || !strings.Contains(err.Error(), c.text) {
				t.Errorf("class %q wanted, with %q: %+v", c.class, c.text, err)
			}
			if d == transports.NotWritten || c.maybe && d != transports.MaybeWritten {
				t.Errorf("delivery %v", d)
			}
			if c.class != messages.ClassTimeout && ctx.Err() != nil {
				t.Error("it took the whole time there was")
			}
			if len(cn.Downs()) > 0 {
				t.Errorf("one broken exchange ended the connection: %v", cn.Downs())
			}
		})
	}
}

// TestNotWritten: the failures that come before any byte could have left.
func TestNotWritten(t *testing.T) {
	refused, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = refused.Close()
	plain := conntest.Serve(t, func(w http.ResponseWriter, r *http.Request) { conntest.Reply(w, conntest.ReadRequest(r), `{}`) })
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	conntest.SilenceErrorLog(secure).StartTLS()
	t.Cleanup(secure.Close)
	dialing := func(dial func(context.Context, string, string) (net.Conn, error)) func(*web.Config) {
		return func(c *web.Config) { c.Client.Transport.(*http.Transport).DialContext = dial }
	}
	for _, c := range []struct {
		name, url string
		change    func(*web.Config)
		class     messages.Class
		text      string
	}{
		{"refused", "http://" + refused.Addr().String(), nil, messages.ClassNetwork, "refused the connection"},
		{"no such host", "http://host.invalid", dialing(func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.DNSError{Err: "no such host", Name: "host.invalid", IsNotFound: true}
		}), messages.ClassNetwork, "does not exist"},
		{"no name server", "http://host.invalid", dialing(func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.DNSError{Err: "server misbehaving", Name: "host.invalid", IsTemporary: true}
		}), messages.ClassNetwork, "could not be looked up"},
		{"a dial without an end", "http://host.invalid", dialing(func(ctx context.Context, _, _ string) (net.Conn, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}), messages.ClassTimeout, "too long"},
		{"TLS to a plain server", strings.Replace(plain.URL, "http:", "https:", 1), nil, messages.ClassNetwork,
			"does not speak TLS"},
		{"a certificate of nobody", secure.URL, nil, messages.ClassNetwork, "nobody known has signed"},
		{"a certificate for another name", secure.URL, func(c *web.Config) {
			tls := secure.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
			tls.ServerName = "another.invalid"
			c.Client.Transport.(*http.Transport).TLSClientConfig = tls
		}, messages.ClassNetwork, "for another name"},
		{"an unreachable proxy", "http://host.invalid", func(c *web.Config) {
			tr := c.Client.Transport.(*http.Transport)
			tr.Proxy = func(r *http.Request) (u *url.URL, err error) {
				return r.URL.Parse("http://user:" + conntest.Canary + "@" + refused.Addr().String())
			}
		}, messages.ClassNetwork, "proxy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := conntest.ConfigWithSecrets(t, c.url)
			if c.change != nil {
				c.change(&cfg)
			}
			cn := conntest.Dial(t, web.NewHTTP(cfg))
			ctx, cancel := context.WithTimeout(t.Context(), conntest.Bound)
			if c.class == messages.ClassTimeout {
				ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
			}
			defer cancel()
			_, d, err := cn.TrySend(ctx, "tools/call", `{}`)
			if err == nil || err.Class != c.class || !strings.Contains(err.Text, c.text) {
				t.Errorf("%v", err)
			}
			if d != transports.NotWritten {
				t.Errorf("delivery %v", d)
			}
		})
	}
}

// silentTripper is a RoundTripper that tells httptrace nothing.
type silentTripper struct{ err error }

func (s silentTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	_ = r.Body.Close()
	return nil, s.err
}

func TestAClientThatTellsNothing(t *testing.T) {
	cfg := conntest.ConfigWithSecrets(t, "http://host.invalid")
	cfg.Client = &http.Client{Transport: silentTripper{errors.New("odd")}}
	_, d, err := conntest.Dial(t, web.NewHTTP(cfg)).TrySend(t.Context(), "tools/call", `{}`)
	if d != transports.MaybeWritten || err.Class != messages.ClassNetwork {
		t.Errorf("%v, %v: nothing is known of the delivery", d, err)
	}
}

// TestStaleIdleConnection: a server closes a connection while it is idle. A request is never written twice.
func TestStaleIdleConnection(t *testing.T) {
	var calls atomic.Int32
	addr := conntest.StartTCPServer(t, func(c net.Conn) {
		for conntest.ReadHTTPRequest(c) {
			n := calls.Add(1)
			body := conntest.Result(conntest.Request{ID: int64(n)}, `{}`)
			_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
				len(body), body)
			if n%2 == 0 {
				return // after every second answer
			}
		}
	})
	cn := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, "http://"+addr)))
	for i := int32(1); i <= 40; i++ {
		_, d, err := cn.TrySend(t.Context(), "tools/call", `{}`)
		switch {
		case err == nil && calls.Load() != i:
			t.Fatalf("after %d calls, %d were executed", i, calls.Load())
		case err != nil && d == transports.NotWritten:
			t.Fatalf("%v, and the server lives", err)
		case err != nil:
			calls.CompareAndSwap(i-1, i) // lost on the stale connection, and not repeated
			cn.NextID.Store(int64(calls.Load()))
		}
	}
}

// TestNothingIsWrittenAfterSend: when Send has returned, the message is the caller's again, and no more of it leaves.
func TestNothingIsWrittenAfterSend(t *testing.T) {
	begun, returned := make(chan struct{}), make(chan struct{})
	found := make(chan bool, 1)
	addr := conntest.StartTCPServer(t, func(c net.Conn) {
		first := make([]byte, 1)
		_, _ = io.ReadFull(c, first)
		close(begun)
		<-returned // nothing is read before, and the buffers on the way hold a part only
		all, _ := io.ReadAll(c)
		found <- strings.Contains(string(all), "Z")
	})
	c := conntest.Dial(t, web.NewHTTP(conntest.ConfigWithSecrets(t, "http://"+addr)))
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-begun
		time.Sleep(50 * time.Millisecond) // the buffers on the way fill
		cancel()
	}()
	body := []byte(strings.Repeat("a", 32<<20))
	d, err := c.Send(ctx, transports.Message{ID: 1, Method: "x", Body: body})
	if d != transports.MaybeWritten || conntest.BoundaryError(t, err).Class != messages.ClassCanceled {
		t.Errorf("%v, %v", d, err)
	}
	for i := range body {
		body[i] = 'Z'
	}
	close(returned)
	if <-found {
		t.Error("the message was written after Send had returned")
	}
}
