package proxy_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestWhatIsHeldBack: an answer that never comes keeps its exchange open, and others go on.
func TestWhatIsHeldBack(t *testing.T) {
	target, control, _ := startHTTPProxy(t, http.HandlerFunc(serveStreamable), "hang-call tool=one", "late-response tool=stream by=1ms")
	ctx, cancel := context.WithCancel(context.Background())
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader(askOne))
	ended := make(chan error, 1)
	go func() {
		_, err := http.DefaultClient.Do(req)
		ended <- err
	}()
	late := make(chan string, 1)
	go func() {
		_, got, _ := postRequest(t, target, askStream)
		late <- got
	}()
	for control.List()[0].Done == 0 || control.List()[1].Done == 0 {
		time.Sleep(time.Millisecond)
	}
	if _, got, err := postRequest(t, target, strings.Replace(askOne, "one", "other", 1)); err != nil || !strings.Contains(got, "other") {
		t.Errorf("another call: %q, %v", got, err)
	}
	select {
	case err := <-ended:
		t.Errorf("the call that hangs ended: %v", err)
	default:
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	_, _, _ = postRequest(t, target, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":6}}`)
	if got := <-late; !strings.Contains(got, hasStream) {
		t.Errorf("the late answer: %q", got)
	}
}

// TestSessionsAndTokens: what was shown until now is refused from now on, and what is new is not.
func TestSessionsAndTokens(t *testing.T) {
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize"}`
	target, control, log := startHTTPProxy(t, http.HandlerFunc(serveStreamable))
	begin := func() string {
		resp, _, err := postRequest(t, target, initialize)
		if err != nil {
			t.Fatal(err)
		}
		return resp.Header.Get("Mcp-Session-Id")
	}
	status := func(header ...string) int {
		resp, _, err := postRequest(t, target, askOne, header...)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode
	}
	until := func(want int, header ...string) {
		t.Helper()
		for deadline := time.Now().Add(bound); status(header...) != want; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the status is %d, not %d", status(header...), want)
			}
		}
	}
	old := begin()
	until(200, "Mcp-Session-Id", old, "Authorization", "Bearer old-secret")
	addRule(t, control, "lose-session")
	until(404, "Mcp-Session-Id", old)
	addRule(t, control, "stale-session-400")
	until(400, "Mcp-Session-Id", old)
	if got := status("Mcp-Session-Id", begin()); got != 200 {
		t.Errorf("a new session: %d", got)
	}
	addRule(t, control, "rotate-token")
	until(401, "Authorization", "Bearer old-secret")
	if got := status("Authorization", "Bearer new"); got != 200 {
		t.Errorf("a new token: %d", got)
	}
	if strings.Contains(log.String(), "old-secret") || strings.Contains(log.String(), old) {
		t.Error("the log holds a credential")
	}
}

// TestStreams: what no client asked for is said on the open stream; it is cut by its time; a half-open connection goes silent.
func TestStreams(t *testing.T) {
	target, control, _ := startHTTPProxy(t, http.HandlerFunc(serveStreamable))
	open := func() (*http.Response, func(want string) error) {
		req, _ := http.NewRequest(http.MethodGet, target, nil)
		req.Header.Set("Accept", "text/event-stream")
		resp, err := (&http.Client{Transport: &http.Transport{}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { resp.Body.Close() })
		var got bytes.Buffer
		return resp, func(want string) error {
			b := make([]byte, 4096)
			for !strings.Contains(got.String(), want) || want == "" {
				n, err := resp.Body.Read(b)
				got.Write(b[:n])
				if err != nil {
					return err
				}
			}
			return nil
		}
	}
	_, read := open()
	if err := read("hello"); err != nil {
		t.Fatal(err)
	}
	addRule(t, control, "list-storm rate=100 name=storm")
	if err := read("notifications/tools/list_changed"); err != nil {
		t.Fatal(err)
	}
	if err := control.Remove("storm"); err != nil {
		t.Fatal(err)
	}
	addRule(t, control, "cut-stream every=10ms")
	if err := read(""); err == nil || err == io.EOF {
		t.Errorf("the stream was not cut: %v", err)
	}
	control.Clear()
	addRule(t, control, "refuse")
	if _, err := (&http.Client{Transport: &http.Transport{}}).Get(target); !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, io.EOF) {
		t.Errorf("a new connection: %v", err)
	}
	control.Clear()
	// The first connection is half-open and stays silent; a new one works.
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	ask := func(c *http.Client, within time.Duration) error {
		ctx, cancel := context.WithTimeout(context.Background(), within)
		defer cancel()
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, target, strings.NewReader(askOne))
		resp, err := c.Do(req)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		return err
	}
	if err := ask(client, bound); err != nil {
		t.Fatal(err)
	}
	addRule(t, control, "half-open")
	for deadline := time.Now().Add(bound); control.List()[0].Done == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not begin")
		}
	}
	if err := ask(client, 300*time.Millisecond); !errors.Is(err, context.DeadlineExceeded) { // whenever that is
		t.Errorf("the half-open connection: %v", err)
	}
	if err := ask(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, bound); err != nil {
		t.Errorf("a new connection: %v", err)
	}
}

// TestSilentDelete: the end of a session is never answered, and everything else is.
func TestSilentDelete(t *testing.T) {
	target, control, _ := startHTTPProxy(t, http.HandlerFunc(serveStreamable), "silent-delete")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, http.MethodDelete, target, nil)
	failed := make(chan error, 1)
	go func() { // it ends with its context
		_, err := http.DefaultClient.Do(req)
		failed <- err
	}()
	for deadline := time.Now().Add(bound); control.List()[0].Done == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the rule has not hit the request")
		}
	}
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("DELETE: %v", err)
	}
	if _, got, err := postRequest(t, target, askOne); err != nil || got != hasOne {
		t.Errorf("a call: %q, %v", got, err)
	}
}
