package serve

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// service is a service whose methods are those of the test. Its tool "hang" waits for its end, "tell" sends a notification, "ask"
// asks the agent.
type service struct {
	mu     sync.Mutex
	closed int
	hung   chan struct{} // gets a value when a hanging request has begun
	work   chan struct{} // lets a working request go on
}

func newService() *service {
	return &service{hung: make(chan struct{}, 100), work: make(chan struct{})}
}

func (*service) Describe(*Session) (Description, *Error) {
	return Description{Capabilities: []byte(`{"tools":{}}`), ServerInfo: []byte(`{"name":"t","version":"1"}`), Instructions: "Be kind."}, nil
}

func (v *service) Handle(ctx context.Context, r *Request) ([]byte, *Error) {
	switch r.Method {
	case "echo":
		return append(append([]byte(`{"got":`), r.Params...), '}'), nil
	case "hang":
		v.hung <- struct{}{}
		<-ctx.Done()
		return nil, &Error{Code: CodeInternal, Message: "cancelled"}
	case "tell":
		r.Notify("notifications/told", []byte("{\n\"n\":1}"))
		return []byte(`{}`), nil
	case "work":
		r.Notify("notifications/begun", nil)
		<-v.work
		r.Notify("notifications/ending", nil)
		return []byte(`{"worked":true}`), nil
	case "ask":
		got, e := r.Ask(ctx, "question", []byte(`{}`))
		return got, e
	case "panic":
		panic("a defect")
	case "value":
		trace, _ := ctx.Value(traceKey{}).(string)
		return []byte(`{"trace":"` + trace + `"}`), nil
	case "listen":
		r.Notify("ack", nil)
		<-r.Closing()
		return []byte(`{}`), nil
	}
	return nil, MethodNotFound(r.Method)
}
func (*service) Notified(*Session, string, []byte) {}
func (v *service) Closed(*Session) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.closed++
}

func (v *service) countClosed() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.closed
}

func (*service) Ready() bool { return true }

// request makes a POST as an agent does; headers are pairs.
func request(body string, headers ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "http://localhost/mcp", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

func do(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`

// open begins a session and returns its id.
func open(t *testing.T, h http.Handler, headers ...string) string {
	t.Helper()
	w := do(h, request(initialize, headers...))
	id := w.Header().Get("Mcp-Session-Id")
	if w.Code != 200 || id == "" || !strings.Contains(w.Body.String(), `"protocolVersion":"2025-11-25"`) {
		t.Fatalf("initialize: %d %s", w.Code, w.Body)
	}
	return id
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

func modern(method, members string, headers ...string) *http.Request {
	return request(`{"jsonrpc":"2.0","id":"x","method":"`+method+`","params":{`+members+modernMeta+`}}`,
		append([]string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method}, headers...)...)
}

func TestSessionOfTheLegacyEra(t *testing.T) {
	v := newService()
	h := NewHandler(Options{Service: v})
	id := open(t, h)
	w := do(h, request(`{"jsonrpc":"2.0","id":"a\u0041","method":"echo","params":{"x":1.0, "y":[]}}`, "Mcp-Session-Id", id))
	if got, want := w.Body.String(), `{"jsonrpc":"2.0","id":"a\u0041","result":{"got":{"x":1.0, "y":[]}}}`; got != want || w.Code != 200 {
		t.Errorf("got %d %s, want %s", w.Code, got, want)
	}
	if w := do(h, request(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", id)); w.Code != 202 || w.Body.Len() > 0 {
		t.Errorf("a notification is answered with %d %s", w.Code, w.Body)
	}
	end := httptest.NewRequest(http.MethodDelete, "http://localhost/mcp", nil)
	end.Header.Set("Mcp-Session-Id", id)
	if w := do(h, end); w.Code != 204 || h.Sessions() != 0 || v.closed != 1 {
		t.Errorf("DELETE: %d, %d sessions, closed %d times", w.Code, h.Sessions(), v.closed)
	}
	if w := do(h, request(`{"jsonrpc":"2.0","id":1,"method":"echo"}`, "Mcp-Session-Id", id)); w.Code != 404 || !strings.Contains(w.Body.String(), `"id":1`) {
		t.Errorf("after the end: %d %s", w.Code, w.Body)
	}
}

func TestSessionsOfOthersDoNotExist(t *testing.T) {
	tokens := NewTokens(map[string]Principal{"one": {Name: "a"}, "two": {Name: "b"}})
	h := NewHandler(Options{Service: newService(), Authenticate: tokens.Authenticate})
	id := open(t, h, "Authorization", "Bearer one")
	ping := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	if w := do(h, request(ping, "Mcp-Session-Id", id, "Authorization", "bearer one")); w.Code != 200 {
		t.Errorf("its own: %d", w.Code)
	}
	if w := do(h, request(ping, "Mcp-Session-Id", id, "Authorization", "Bearer two")); w.Code != 404 {
		t.Errorf("another principal: %d", w.Code)
	}
	other := request(ping, "Mcp-Session-Id", id, "Authorization", "Bearer one")
	other.URL.Path = "/mcp/s/files"
	if w := do(h, other); w.Code != 404 {
		t.Errorf("another view: %d", w.Code)
	}
	tokens.Set(map[string]Principal{"three": {Name: "a"}})
	if w := do(h, request(ping, "Mcp-Session-Id", id, "Authorization", "Bearer one")); w.Code != 401 {
		t.Errorf("a token that was taken away: %d", w.Code)
	}
	if w := do(h, request(ping, "Mcp-Session-Id", id, "Authorization", "Bearer three")); w.Code != 404 {
		t.Errorf("the session lived on with its successor: %d", w.Code)
	}
}

func TestRequestsOfTheModernEra(t *testing.T) {
	h := NewHandler(Options{Service: newService()})
	for name, c := range map[string]struct {
		request *http.Request
		status  int
		want    string
	}{
		"discover":    {modern("server/discover", ""), 200, `"supportedVersions":["2026-07-28"]`},
		"result type": {modern("echo", ""), 200, `"result":{"resultType":"complete","got":`},
		"removed":     {modern("initialize", ""), 404, `"code":-32601`},
		"unknown":     {modern("nothing", ""), 404, `"code":-32601`},
		"no meta":     {request(`{"jsonrpc":"2.0","id":1,"method":"echo","params":{}}`, "Mcp-Protocol-Version", "2026-07-28"), 400, `"code":-32602`},
		"large capabilities": {request(`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",`+
			`"io.modelcontextprotocol/clientCapabilities":{"x":"`+strings.Repeat("x", 17<<10)+`"}}}}`, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "echo"), 200, `"code":-32602,"message":"the capabilities have more than 16384 bytes"`},
		"other version": {request(`{"jsonrpc":"2.0","id":1,"method":"echo","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"v9"}}}`, "Mcp-Protocol-Version", "v9"), 400, `"code":-32022,"message":"Unsupported protocol version","data":{"supported":["2026-07-28"],"requested":"v9"}`},
		"other header":  {modern("echo", "", "Mcp-Method", "tell"), 400, `"code":-32020`},
		"no name":       {modern("tools/call", `"name":"x",`), 400, `"code":-32020`},
		"wrong name":    {modern("tools/call", `"name":"x",`, "Mcp-Name", "y"), 400, `"code":-32020`},
		"encoded name":  {modern("tools/call", `"name":"é",`, "Mcp-Name", "=?base64?w6k=?="), 404, `"code":-32601`},
	} {
		if w := do(h, c.request); w.Code != c.status || !strings.Contains(w.Body.String(), c.want) {
			t.Errorf("%s: %d %s, want %d and %s", name, w.Code, w.Body, c.status, c.want)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodDelete} {
		if w := do(h, httptest.NewRequest(method, "http://localhost/mcp", nil)); w.Code != 405 {
			t.Errorf("%s without a session: %d", method, w.Code)
		}
	}
}

// traceKey is that of the value which a program's middleware puts into the context of a request.
type traceKey struct{}

// What the program's middleware puts into the context of a request reaches the service, in both eras.
func TestContextValuesReachTheService(t *testing.T) {
	h := NewHandler(Options{Service: newService()})
	traced := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), traceKey{}, "00-1")))
	})
	legacy := request(`{"jsonrpc":"2.0","id":1,"method":"value"}`, "Mcp-Session-Id", open(t, h))
	for era, r := range map[string]*http.Request{"legacy": legacy, "modern": modern("value", "")} {
		if w := do(traced, r); w.Code != 200 || !strings.Contains(w.Body.String(), `"trace":"00-1"`) {
			t.Errorf("%s: %d %s", era, w.Code, w.Body)
		}
	}
}

// A header that no value has is refused: a server that compared it with the message would take another server's word for it.
func TestDecodeHeader(t *testing.T) {
	for header, want := range map[string]string{
		"us-west1": "us-west1", " a\tb ": "a\tb", "": "", "=?base64?": "=?base64?", "=?base64?=": "=?base64?=", "=?base64??=": "",
		"=?base64?w6k=?=": "é", "=?BASE64?w6k=?=": "=?BASE64?w6k=?=",
		"é": "refused", "a\x7f": "refused", "a\x01": "refused", "=?base64?w6k?=": "refused", "=?base64?!?=": "refused",
	} {
		got, ok := DecodeHeader(header)
		if ok != (want != "refused") || ok && got != want {
			t.Errorf("%q is read as %q, %v, want %q", header, got, ok, want)
		}
	}
}

func TestBadInputIsRefused(t *testing.T) {
	h := NewHandler(Options{Service: newService(), MaxBody: 1000})
	good := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
	from := func(header, value string) *http.Request {
		r := request(good)
		if header == "Host" {
			r.Host = value
		} else {
			r.Header.Add(header, value)
		}
		return r
	}
	with := func(header, value string) *http.Request {
		r := request(good)
		r.Header.Set(header, value)
		return r
	}
	twice := from("Origin", "http://localhost")
	twice.Header.Add("Origin", "http://localhost")
	elsewhere := request(good)
	elsewhere.URL.Path = "/mcp/s/"
	for name, c := range map[string]struct {
		request *http.Request
		status  int
		code    string
	}{
		"half a message":  {request(`{"jsonrpc":"2.0","id":1,`), 400, `"code":-32700`},
		"no JSON":         {request("hello"), 400, `"code":-32700`},
		"nothing":         {request(""), 400, `"code":-32700`},
		"two messages":    {request(good + good), 400, `"code":-32700`},
		"batch":           {request("[" + good + "]"), 400, `"code":-32600`},
		"other version":   {request(`{"jsonrpc":"1.0","id":1,"method":"ping"}`), 400, `"code":-32600`},
		"doubled member":  {request(`{"jsonrpc":"2.0","id":1,"method":"ping","method":"echo"}`), 400, `"id":1,"error":{"code":-32600`},
		"id null":         {request(`{"jsonrpc":"2.0","id":null,"method":"ping"}`), 400, `"id":null,"error":{"code":-32600`},
		"id object":       {request(`{"jsonrpc":"2.0","id":{},"method":"ping"}`), 400, `"code":-32600`},
		"no method":       {request(`{"jsonrpc":"2.0","id":1}`), 400, `"code":-32600`},
		"params a list":   {request(`{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}`), 400, `"code":-32602`},
		"huge":            {request(`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 1000) + `"}`), 413, `"code":-32600`},
		"no session":      {request(good), 400, `"code":-32600`},
		"unknown session": {from("Mcp-Session-Id", "nobody"), 404, `"code":-32001`},
		"no UTF-8":        {request("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"x\":\"\xe9\"}}"), 400, `"id":null,"error":{"code":-32700`},
		"plain text":      {with("Content-Type", "text/plain"), 415, `"code":-32600`},
		"no type":         {with("Content-Type", ""), 415, `"code":-32600`},
		"a longer type":   {with("Content-Type", "application/jsonp"), 415, `"code":-32600`},
		"only JSON":       {with("Accept", "application/json"), 406, `"code":-32600`},
		"only events":     {with("Accept", "text/event-stream, text/*"), 406, `"code":-32600`},
		"modern answer":   {request(`{"jsonrpc":"2.0","id":1,"result":{}}`, "Mcp-Protocol-Version", "2026-07-28"), 400, `"id":null,"error":{"code":-32600`},
		"foreign host":    {from("Host", "evil.example:80"), 403, ""},
		"foreign origin":  {from("Origin", "http://evil.example"), 403, ""},
		"origin null":     {from("Origin", "null"), 403, ""},
		"two origins":     {twice, 403, ""},
		"no view":         {elsewhere, 404, ""},
	} {
		if w := do(h, c.request); w.Code != c.status || !strings.Contains(w.Body.String(), c.code) {
			t.Errorf("%s: %d %s, want %d and %s", name, w.Code, w.Body, c.status, c.code)
		}
	}
	if w := do(h, from("Origin", "http://localhost:3000")); w.Code != 400 {
		t.Errorf("a page of this machine: %d", w.Code)
	}
	id := open(t, h)
	for header, values := range map[string][]string{
		"Content-Type": {"Application/JSON", "application/json ; charset=utf-8"},
		"Accept":       {"*/*", "Application/*;q=0.5,text/*", "TEXT/event-stream , application/json;q=0.1"},
	} {
		for _, value := range values {
			r := with(header, value)
			r.Header.Set("Mcp-Session-Id", id)
			if w := do(h, r); w.Code != 200 {
				t.Errorf("%s %s: %d %s", header, value, w.Code, w.Body)
			}
		}
	}
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // one that is not refused is a stream
		defer cancel()
		r := from("Mcp-Session-Id", id).WithContext(ctx)
		r.Method = method
		r.Header.Set("Mcp-Protocol-Version", "2025-01-01")
		if w := do(h, r); w.Code != 400 || !strings.Contains(w.Body.String(), `"code":-32600`) {
			t.Errorf("%s with an unknown version: %d %s", method, w.Code, w.Body)
		}
	}
	if w := do(h, from("Mcp-Session-Id", id)); w.Code != 200 {
		t.Errorf("after it: %d %s", w.Code, w.Body)
	}
}

func TestDuplicateIDIsRefusedAndChangesNothing(t *testing.T) {
	v := newService()
	h := NewHandler(Options{Service: v})
	id := open(t, h)
	first := make(chan *httptest.ResponseRecorder, 1)
	go func() { first <- do(h, request(`{"jsonrpc":"2.0","id":7,"method":"hang"}`, "Mcp-Session-Id", id)) }()
	<-v.hung
	if w := do(h, request(`{"jsonrpc":"2.0","id":7,"method":"echo"}`, "Mcp-Session-Id", id)); w.Code != 400 || !strings.Contains(w.Body.String(), `"code":-32600`) {
		t.Errorf("the second one: %d %s", w.Code, w.Body)
	}
	// The text 7 is another id than the number.
	if w := do(h, request(`{"jsonrpc":"2.0","id":"7","method":"ping"}`, "Mcp-Session-Id", id)); w.Code != 200 {
		t.Errorf("a text as id: %d %s", w.Code, w.Body)
	}
	do(h, request(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`, "Mcp-Session-Id", id))
	if w := <-first; w.Code != 200 || w.Header().Get("Content-Type") != "text/event-stream" || w.Body.Len() > 0 {
		t.Errorf("the first one, which was taken back: %d %v %s", w.Code, w.Header(), w.Body)
	}
}

func TestNoticesMakeAStreamOfEvents(t *testing.T) {
	h := NewHandler(Options{Service: newService()})
	w := do(h, request(`{"jsonrpc":"2.0","id":1,"method":"tell"}`, "Mcp-Session-Id", open(t, h)))
	want := "id: 2-1\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/told\",\"params\":{ \"n\":1}}\n\n" +
		"id: 2-2\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n"
	if w.Body.String() != want || w.Header().Get("Content-Type") != "text/event-stream" || w.Header().Get("X-Accel-Buffering") != "no" {
		t.Errorf("got %v\n%s", w.Header(), w.Body)
	}
}

func TestDefectCostsOneRequest(t *testing.T) {
	h := NewHandler(Options{Service: newService()})
	if w := do(h, modern("panic", "")); w.Code != 200 || !strings.Contains(w.Body.String(), `"code":-32603`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// A question goes out on the stream of its request, and the answer comes back by a request of its own.
func TestAgentIsAsked(t *testing.T) {
	h := NewHandler(Options{Service: newService()})
	server := httptest.NewServer(h)
	defer server.Close()
	id := open(t, h)
	post := func(body string) *http.Response {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Mcp-Session-Id", id)
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	res := post(`{"jsonrpc":"2.0","id":1,"method":"ask"}`)
	defer res.Body.Close()
	events := bufio.NewScanner(res.Body)
	next := func() (m struct {
		ID     json.RawMessage
		Method string
		Result json.RawMessage
	}) {
		for events.Scan() {
			if data, ok := strings.CutPrefix(events.Text(), "data: "); ok {
				if err := json.Unmarshal([]byte(data), &m); err != nil {
					t.Fatal(err)
				}
				return m
			}
		}
		t.Fatal("the stream has ended")
		return m
	}
	q := next()
	if q.Method != "question" {
		t.Fatalf("got %+v", q)
	}
	// The answer of another session is dropped.
	stranger := request(`{"jsonrpc":"2.0","id":`+string(q.ID)+`,"result":{"who":"stranger"}}`, "Mcp-Session-Id", open(t, h))
	do(h, stranger)
	post(`{"jsonrpc":"2.0","id":` + string(q.ID) + `,"result":{"who":"agent"}}`).Body.Close()
	if a := next(); string(a.Result) != `{"who":"agent"}` {
		t.Errorf("the answer is %s", a.Result)
	}
}

func TestIdleSessionsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newService()
		h := NewHandler(Options{Service: v, SessionIdle: time.Hour})
		idle, used := open(t, h), open(t, h)
		for range 8 {
			time.Sleep(20 * time.Minute)
			do(h, request(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Mcp-Session-Id", used))
		}
		if w := do(h, request(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Mcp-Session-Id", idle)); w.Code != 404 || v.countClosed() != 1 {
			t.Errorf("the idle one: %d, %d closed", w.Code, v.countClosed())
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if h.Sessions() != 0 || v.countClosed() != 2 {
			t.Errorf("%d sessions are left, %d closed", h.Sessions(), v.countClosed())
		}
		if err := h.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A principal that opens sessions without end displaces its own, and nobody else's.
func TestSessionsAreBounded(t *testing.T) {
	tokens := NewTokens(map[string]Principal{"one": {Name: "a"}, "two": {Name: "b"}})
	h := NewHandler(Options{Service: newService(), Authenticate: tokens.Authenticate, MaxSessions: 3})
	defer func() { _ = h.Close(t.Context()) }()
	other := open(t, h, "Authorization", "Bearer two")
	var ids []string
	for range 10 {
		ids = append(ids, open(t, h, "Authorization", "Bearer one"))
	}
	for i, id := range ids {
		want := 404
		if i >= 7 {
			want = 200
		}
		if w := do(h, request(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Mcp-Session-Id", id, "Authorization", "Bearer one")); w.Code != want {
			t.Errorf("session %d: %d, want %d", i, w.Code, want)
		}
	}
	if w := do(h, request(`{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Mcp-Session-Id", other, "Authorization", "Bearer two")); w.Code != 200 {
		t.Errorf("the other principal's: %d", w.Code)
	}
}

func TestRequestsAreBoundedByPrincipal(t *testing.T) {
	v := newService()
	tokens := NewTokens(map[string]Principal{"one": {Name: "a"}, "two": {Name: "b"}})
	h := NewHandler(Options{Service: v, Authenticate: tokens.Authenticate, MaxRequests: 2})
	id := open(t, h, "Authorization", "Bearer one")
	var all sync.WaitGroup
	for _, n := range []string{"1", "2"} {
		all.Go(func() {
			do(h, request(`{"jsonrpc":"2.0","id":`+n+`,"method":"hang"}`, "Mcp-Session-Id", id, "Authorization", "Bearer one"))
		})
		<-v.hung
	}
	if w := do(h, modern("echo", "", "Authorization", "Bearer one")); w.Code != 429 {
		t.Errorf("one more: %d", w.Code)
	}
	if w := do(h, modern("echo", "", "Authorization", "Bearer two")); w.Code != 200 {
		t.Errorf("another principal: %d", w.Code)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Close(ctx); err == nil {
		t.Error("requests were cut off, and nothing says so")
	}
	all.Wait()
	if w := do(h, modern("echo", "", "Authorization", "Bearer two")); w.Code != 503 {
		t.Errorf("after the end: %d", w.Code)
	}
}

// standingService answers a subscription when the endpoint ends.
type standingService struct{ *service }

func (v standingService) Handle(ctx context.Context, r *Request) ([]byte, *Error) {
	if r.Method != "subscriptions/listen" {
		return v.service.Handle(ctx, r)
	}
	v.hung <- struct{}{}
	<-r.Closing()
	return []byte(`{}`), nil
}

// The bytes of standing requests count whatever their size: a principal may have many thousands of them. Before, each of 64 KB was held for
// nothing.
func TestStandingRequestsHoldBoundedBytes(t *testing.T) {
	v := standingService{newService()}
	tokens := NewTokens(map[string]Principal{"one": {Name: "a"}, "two": {Name: "b"}})
	h := NewHandler(Options{Service: v, Authenticate: tokens.Authenticate, MaxBytes: 1 << 20})
	listen := func(token string) *http.Request {
		return modern("subscriptions/listen", `"x":"`+strings.Repeat("y", 63<<10)+`",`, "Authorization", "Bearer "+token)
	}
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() { do(h, listen("one")) })
		<-v.hung
	}
	if w := do(h, listen("one")); w.Code != 429 {
		t.Errorf("one more: %d", w.Code)
	}
	if w := do(h, modern("echo", "", "Authorization", "Bearer one")); w.Code != 200 {
		t.Errorf("a request that passes: %d", w.Code)
	}
	all.Go(func() { do(h, listen("two")) })
	<-v.hung
	if err := h.Close(t.Context()); err != nil {
		t.Error(err)
	}
	all.Wait()
	if held := h.loads["a"].held; held != 0 {
		t.Errorf("%d bytes are held", held)
	}
}

// What an agent says of itself and a method that no server has are neither kept nor sent back in any length. Before, a session kept 16 MB for its
// agent, and there may be many sessions.
func TestLongWordsAreNotKept(t *testing.T) {
	h := NewHandler(Options{Service: newService()})
	long := strings.Repeat("x", 1<<20)
	if w := do(h, request(strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"experimental":{"x":"`+long+`"}}`, 1))); !strings.Contains(w.Body.String(), `"code":-32602`) {
		t.Errorf("long capabilities: %d %.200s", w.Code, w.Body)
	}
	w := do(h, request(strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{},"clientInfo":{"name":"`+long+`"}`, 1)))
	if w.Code != 200 {
		t.Errorf("a long name: %d %.200s", w.Code, w.Body)
	}
	id := w.Header().Get("Mcp-Session-Id")
	w = do(h, request(`{"jsonrpc":"2.0","id":1,"method":"`+long+`"}`, "Mcp-Session-Id", id))
	if w.Code != 200 || w.Body.Len() > 1000 || !strings.Contains(w.Body.String(), `"id":1,"error":{"code":-32601,"message":"Method not found: xxx`) {
		t.Errorf("a long method: %d, %d bytes, %.200s", w.Code, w.Body.Len(), w.Body)
	}
}

func TestStandingRequestsAreAnsweredAtTheEnd(t *testing.T) {
	h := NewHandler(Options{Service: newService()})
	server := httptest.NewServer(h)
	defer server.Close()
	r := modern("listen", "")
	out, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/mcp", r.Body)
	if err != nil {
		t.Fatal(err)
	}
	out.Header = r.Header
	res, err := http.DefaultClient.Do(out)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if err := h.Close(t.Context()); err != nil {
		t.Error(err)
	}
	b, err := io.ReadAll(res.Body)
	if err != nil || !strings.Contains(string(b), `"result":{"resultType":"complete"}`) {
		t.Errorf("the stream ended with %s, %v", b, err)
	}
}

// stuckWriter is an agent that reads nothing until the test ends.
type stuckWriter struct {
	*httptest.ResponseRecorder
	release chan struct{}
}

func (w stuckWriter) Write(b []byte) (int, error) {
	<-w.release
	return len(b), nil
}

// Requests that the end of the endpoint cuts off are answered, in both eras. Before, one of the modern era was not even cut off, and no answer
// reached an agent.
func TestRequestsThatAreCutOffAreAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newService()
		h := NewHandler(Options{Service: v})
		id := open(t, h)
		answers := make(chan string, 2)
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		for _, r := range []*http.Request{request(`{"jsonrpc":"2.0","id":7,"method":"hang"}`, "Mcp-Session-Id", id), modern("hang", "")} {
			go func() { answers <- do(h, r.WithContext(ctx)).Body.String() }()
		}
		<-v.hung
		<-v.hung
		within, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := h.Close(within); err == nil || len(answers) != 2 {
			t.Errorf("%d of 2 are answered when it has ended: %v", len(answers), err)
		}
		leave()
		for range 2 {
			if got := <-answers; !strings.Contains(got, `"message":"cancelled"`) {
				t.Errorf("the answer is %s", got)
			}
		}
	})
}

func TestSlowReaderHoldsUpNobody(t *testing.T) {
	w := stuckWriter{httptest.NewRecorder(), make(chan struct{})}
	s := newEventStream(w, time.Hour)
	taken := 0
	for range 10 * maxQueuedEvents {
		if s.sendMessage([]byte(`{}`), false) {
			taken++
		}
	}
	if taken > 2*maxQueuedEvents {
		t.Errorf("%d notices were taken", taken)
	}
	if !s.sendMessage([]byte(`{}`), true) {
		t.Error("there is no room for what must be sent")
	}
	close(w.release)
	s.writeAnswer(200, []byte(`{}`))
}

func TestSilentStreamsAreKeptAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		s := newEventStream(w, 15*time.Second)
		time.Sleep(40 * time.Second)
		s.writeAnswer(200, []byte(`{}`))
		if got := w.Body.String(); got != ":\n\n:\n\nevent: message\ndata: {}\n\n" {
			t.Errorf("got %q", got)
		}
	})
}

func TestNoticesWaitForAStream(t *testing.T) {
	s := &Session{}
	s.Notify("changed", "notifications/changed", nil)
	s.Notify("changed", "notifications/changed", nil)
	s.Notify("", "notifications/message", nil)
	w := httptest.NewRecorder()
	to := newEventStream(w, time.Hour)
	if !s.setStream(to) {
		t.Fatal("there is another stream")
	}
	to.stopWriting()
	if strings.Count(w.Body.String(), "data: ") != 1 {
		t.Errorf("got %q", w.Body)
	}
}

// What is written makes room for what comes: a stream takes notices for as long as its agent reads them, however many bytes they have together.
func TestWrittenNoticesMakeRoom(t *testing.T) {
	s := newEventStream(httptest.NewRecorder(), time.Hour)
	notice := bytes.Repeat([]byte("x"), maxQueuedBytes/16)
	for n := range 64 {
		if !s.sendMessage(notice, false) {
			t.Fatalf("notice %d was not taken", n)
		}
		s.mu.Lock()
		for s.writing {
			s.idle.Wait()
		}
		s.mu.Unlock()
	}
	s.mu.Lock()
	s.writing = true // as while an agent is slow: what comes is queued
	s.mu.Unlock()
	for n := range 2 {
		if !s.sendMessage(notice, false) {
			t.Errorf("notice %d has no room, and all before it were written", n)
		}
	}
}

// The id of a request that its agent has taken back is free at once. The end of that request ends nothing of the next one with the id.
func TestTheIDOfACancelledRequestIsUsedAgain(t *testing.T) {
	s, cancelled := &Session{}, false
	first := &Request{Session: s, ID: []byte("1"), cancel: func() {}}
	second := &Request{Session: s, ID: []byte("1"), cancel: func() { cancelled = true }}
	takeBack := func() { s.cancelRequest([]byte(`{"requestId":1}`)) }
	if e := s.beginRequest(first); e != nil {
		t.Fatal(e)
	}
	takeBack()
	if e := s.beginRequest(second); e != nil {
		t.Fatal(e)
	}
	s.finishRequest(first)
	if takeBack(); !cancelled {
		t.Error("the second request cannot be taken back, because the first one has ended")
	}
}
