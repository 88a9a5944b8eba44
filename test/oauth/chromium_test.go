//go:build unix

package oauth_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestLoginInChromium is the whole way with a real browser: its redirects, its cookies, its view of the last page. With
// SCREENSHOT set to a file, the last page is kept there as a picture.
func TestLoginInChromium(t *testing.T) {
	chromium, driver := browserPrograms(t)
	as := startAS(t)
	server := startMCP(t, as)
	p := newPerson(t, server.URL)
	wholeWay(t, as, p, server, func(page string) {
		b := startChromium(t, chromium, driver)
		b.do(http.MethodPost, "/url", map[string]any{"url": page}, nil)
		var text string
		for deadline := time.Now().Add(bound); !strings.Contains(text, "mcpvisor has the answer"); {
			b.do(http.MethodPost, "/execute/sync", map[string]any{
				"script": "return document.body ? document.body.innerText : ''", "args": []any{}}, &text)
			if time.Now().After(deadline) {
				t.Fatalf("the browser shows %q", text)
			}
		}
		if !strings.Contains(text, "You may close this window.") {
			t.Errorf("the last page says %q", text)
		}
		// The page is all that was loaded for it, but for the icon that a browser asks for by itself.
		var loaded []string
		b.do(http.MethodPost, "/execute/sync", map[string]any{
			"script": "return performance.getEntriesByType('resource').map(e => e.name)", "args": []any{}}, &loaded)
		for _, name := range loaded {
			if !strings.HasSuffix(name, "/favicon.ico") {
				t.Errorf("the last page has loaded %s", name)
			}
		}
		if file := os.Getenv("SCREENSHOT"); file != "" {
			var picture string
			b.do(http.MethodGet, "/screenshot", nil, &picture)
			png, err := base64.StdEncoding.DecodeString(picture)
			if err != nil || os.WriteFile(file, png, 0o600) != nil {
				t.Errorf("no picture: %v", err)
			}
		}
	})
}

// browserPrograms are Chromium and its driver.
func browserPrograms(t *testing.T) (chromium, driver string) {
	t.Helper()
	var err error
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if chromium, err = exec.LookPath(name); err == nil {
			break
		}
	}
	if err == nil {
		driver, err = exec.LookPath("chromedriver")
	}
	if err != nil {
		t.Skip("NOT TESTED: a sign-in in a real browser. Chromium and its driver are not installed; " +
			"on Debian: apt install chromium chromium-driver")
	}
	return chromium, driver
}

// browser is a session of WebDriver (W3C).
type browser struct {
	t       *testing.T
	session string // its URL
}

// startChromium starts one without a window, in a home of its own, which ends with the test and with all its processes.
func startChromium(t *testing.T, chromium, driver string) *browser {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	home, err := os.MkdirTemp("", "chromium")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(driver, fmt.Sprintf("--port=%d", port))
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_CACHE_HOME="+home)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	b := &browser{t: t}
	t.Cleanup(func() {
		if b.session != "" {
			b.do(http.MethodDelete, "", nil, nil)
		}
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait() // it was killed
		_ = os.RemoveAll(home)
	})
	address := fmt.Sprintf("http://127.0.0.1:%d", port)
	for deadline := time.Now().Add(bound); ; time.Sleep(20 * time.Millisecond) {
		if resp, err := http.Get(address + "/status"); err == nil {
			_ = resp.Body.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("chromedriver does not start")
		}
	}
	var made struct{ SessionID string }
	b.call(http.MethodPost, address+"/session", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"goog:chromeOptions": map[string]any{"binary": chromium, "args": []string{
			"--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
			"--disable-sync", "--no-first-run", "--disable-dev-shm-usage", "--no-proxy-server", "--window-size=900,500",
			"--user-data-dir=" + filepath.Join(home, "data"),
		}},
	}}}, &made)
	b.session = address + "/session/" + made.SessionID
	return b
}

func (b *browser) do(method, path string, body, value any) {
	b.t.Helper()
	b.call(method, b.session+path, body, value)
}

func (b *browser) call(method, address string, body, value any) {
	b.t.Helper()
	if err := func() error {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		if body == nil {
			text = nil
		}
		req, err := http.NewRequest(method, address, bytes.NewReader(text))
		if err != nil {
			return err
		}
		resp, err := (&http.Client{Timeout: bound}).Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		var answer struct{ Value json.RawMessage }
		if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return errors.New(string(answer.Value))
		}
		if value == nil {
			return nil
		}
		return json.Unmarshal(answer.Value, value)
	}(); err != nil {
		b.t.Fatalf("the browser: %v", err)
	}
}
