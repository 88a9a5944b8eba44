//go:build unix

// Package chromium lets a test look at a page as a person does: a real Chromium without a window, driven over WebDriver (W3C)
// by its own driver. Nothing is downloaded; a machine that has none skips the test, with a notice.
//
//	b := chromium.Start(t, "the report in a browser")
//	b.Open("file:///PATH/report.html")
//	b.Run(&title, "return document.title")
//
// A browser has a home of its own and ends with the test, with all its processes. A dialog that a page opens fails the next
// call. It is not safe for concurrent use.
//
// How it fits: tests of the report of test/chaos and of the last page of a sign-in use it. It sends WebDriver's requests to a driver
// on a loopback port, and Chromium's own commands through it.
//
// Not promised: a picture that is the same on two machines; fonts differ.
package chromium

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
	"syscall"
	"testing"
	"time"
)

// bound limits every request to the browser: it is more than a loaded machine needs.
const bound = time.Minute

// Programs are Chromium and its driver. The test is skipped if they are not there, and the notice says what is not tested then.
func Programs(t *testing.T, what string) (browser, driver string) {
	t.Helper()
	var err error
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if browser, err = exec.LookPath(name); err == nil {
			break
		}
	}
	if err == nil {
		driver, err = exec.LookPath("chromedriver")
	}
	if err != nil {
		t.Skip("NOT TESTED: " + what + ". Chromium and its driver are not installed; " +
			"on Debian: apt install chromium chromium-driver")
	}
	return browser, driver
}

// Browser is a session of WebDriver.
type Browser struct {
	t       *testing.T
	session string // its URL
}

// Start starts a headless browser with a window of 900 × 500 pixels. It ends with the test.
func Start(t *testing.T, what string) *Browser {
	t.Helper()
	program, driver := Programs(t, what)
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
	b := &Browser{t: t}
	t.Cleanup(func() {
		if b.session != "" {
			_ = b.requestDriver(http.MethodDelete, b.session, nil, nil) // what does not end is killed
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
	b.callDriver(http.MethodPost, address+"/session", map[string]any{"capabilities": map[string]any{"alwaysMatch": map[string]any{
		"goog:loggingPrefs": map[string]any{"browser": "ALL"},
		"goog:chromeOptions": map[string]any{"binary": program, "args": []string{
			"--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update",
			"--disable-sync", "--no-first-run", "--disable-dev-shm-usage", "--no-proxy-server", "--window-size=900,500",
			"--user-data-dir=" + filepath.Join(home, "data"),
		}},
	}}}, &made)
	b.session = address + "/session/" + made.SessionID
	return b
}

// Open goes to a page and waits until it is loaded.
func (b *Browser) Open(url string) {
	b.t.Helper()
	b.callDriver(http.MethodPost, b.session+"/url", map[string]any{"url": url}, nil)
}

// Run runs the body of a function in the page and decodes what it returns into value, which may be nil.
func (b *Browser) Run(value any, script string, args ...any) {
	b.t.Helper()
	if args == nil {
		args = []any{}
	}
	b.callDriver(http.MethodPost, b.session+"/execute/sync", map[string]any{"script": script, "args": args}, value)
}

// Loaded returns the addresses that the page has loaded, without the icon that a browser asks for by itself.
func (b *Browser) Loaded() []string {
	b.t.Helper()
	var names []string
	b.Run(&names, "return performance.getEntriesByType('resource').map(e => e.name).filter(n => !n.endsWith('/favicon.ico'))")
	return names
}

// Complaints returns the errors and warnings in the page's console since the last call.
func (b *Browser) Complaints() []string {
	b.t.Helper()
	var entries []struct{ Level, Message string }
	b.callDriver(http.MethodPost, b.session+"/se/log", map[string]any{"type": "browser"}, &entries)
	var out []string
	for _, e := range entries {
		if e.Level == "SEVERE" || e.Level == "WARNING" {
			out = append(out, e.Level+" "+e.Message)
		}
	}
	return out
}

// Resize makes the window so large, and the page's part of it exactly so.
func (b *Browser) Resize(width, height int) {
	b.t.Helper()
	b.Devtools("Emulation.setDeviceMetricsOverride", map[string]any{
		"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false}, nil)
}

// Dark lets the system prefer dark pages, or light ones.
func (b *Browser) Dark(dark bool) {
	b.t.Helper()
	scheme := map[bool]string{true: "dark", false: "light"}[dark]
	b.Devtools("Emulation.setEmulatedMedia", map[string]any{
		"features": []map[string]any{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// Click clicks with a mouse at a place of the page.
func (b *Browser) Click(x, y int) {
	b.t.Helper()
	b.Drag(x, y, x, y)
}

// Drag presses the mouse in one place and releases it in another one.
func (b *Browser) Drag(fromX, fromY, toX, toY int) {
	b.t.Helper()
	move := func(x, y int) map[string]any {
		return map[string]any{"type": "pointerMove", "duration": 0, "x": x, "y": y}
	}
	actions := []map[string]any{move(fromX, fromY), {"type": "pointerDown", "button": 0}}
	if fromX != toX || fromY != toY {
		actions = append(actions, move((fromX+toX)/2, (fromY+toY)/2), move(toX, toY))
	}
	b.performActions(map[string]any{"type": "pointer", "id": "mouse", "parameters": map[string]any{"pointerType": "mouse"},
		"actions": append(actions, map[string]any{"type": "pointerUp", "button": 0})})
}

// Press presses keys one after the other, each a character or one of the keys of WebDriver ("\uE015" is the arrow down).
func (b *Browser) Press(keys ...string) {
	b.t.Helper()
	var actions []map[string]any
	for _, k := range keys {
		actions = append(actions, map[string]any{"type": "keyDown", "value": k}, map[string]any{"type": "keyUp", "value": k})
	}
	b.performActions(map[string]any{"type": "key", "id": "keyboard", "actions": actions})
}

func (b *Browser) performActions(source map[string]any) {
	b.t.Helper()
	b.callDriver(http.MethodPost, b.session+"/actions", map[string]any{"actions": []any{source}}, nil)
}

// Devtools sends a command of Chromium's own protocol.
func (b *Browser) Devtools(command string, params map[string]any, value any) {
	b.t.Helper()
	b.callDriver(http.MethodPost, b.session+"/goog/cdp/execute", map[string]any{"cmd": command, "params": params}, value)
}

// Picture returns the content of the window as PNG.
func (b *Browser) Picture() []byte {
	b.t.Helper()
	var text string
	b.callDriver(http.MethodGet, b.session+"/screenshot", nil, &text)
	png, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		b.t.Fatalf("the browser: %v", err)
	}
	return png
}

// callDriver sends a request to the driver and fails the test for any error.
func (b *Browser) callDriver(method, address string, body, value any) {
	b.t.Helper()
	if err := b.requestDriver(method, address, body, value); err != nil {
		b.t.Fatalf("the browser: %v", err)
	}
}

// requestDriver sends one request of the WebDriver protocol. A refusal of the driver is an error with its text; value may be nil.
func (b *Browser) requestDriver(method, address string, body, value any) error {
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
}
