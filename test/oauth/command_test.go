//go:build unix

package oauth_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/mcpvisor/mcpvisor/test/peers"
	"github.com/mcpvisor/mcpvisor/test/servers/built"
	"github.com/mcpvisor/mcpvisor/transports/auth"
)

// cliUser is somebody with a home, a project with one protected server, and the command.
type cliUser struct {
	t       *testing.T
	program string
	home    string
	project string
	// page is where their browser puts the address that it is told to open: xdg-open, in these tests.
	page string
	env  []string
	// said is all that any command has printed.
	said outputBuffer
}

func newCLIUser(t *testing.T, server string) *cliUser {
	t.Helper()
	home := t.TempDir()
	short, err := os.MkdirTemp("", "m") // for the socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	p := &cliUser{t: t, program: built.Program(t, "cmd/mcpvisor"), home: home, project: filepath.Join(home, "p"),
		page: filepath.Join(home, "page")}
	bin := filepath.Join(home, "bin")
	for _, dir := range []string{p.project, bin} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write := func(path, text string, mode fs.FileMode) {
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(bin, "xdg-open"), "#!/bin/sh\nprintf %s \"$1\" > '"+p.page+".new' && mv '"+p.page+".new' '"+
		p.page+"'\n", 0o700)
	write(filepath.Join(p.project, "c.json"),
		fmt.Sprintf(`{"mcpServers": {"protected": {"type": "http", "url": %q}}}`, server), 0o600)
	p.env = []string{
		"HOME=" + home, "PATH=" + bin + string(os.PathListSeparator) + os.Getenv("PATH"), "XDG_RUNTIME_DIR=" + short,
		"XDG_CONFIG_HOME=" + filepath.Join(home, "config"), "XDG_CACHE_HOME=" + filepath.Join(home, "cache"),
		"XDG_STATE_HOME=" + filepath.Join(home, "state"), "BROWSER=xdg-open", "GORACE=atexit_sleep_ms=0",
		"DBUS_SESSION_BUS_ADDRESS=unix:path=" + filepath.Join(short, "no-bus"),
	}
	return p
}

// outputBuffer collects what processes print.
type outputBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (c *outputBuffer) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.Write(b)
}

func (c *outputBuffer) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.text.String()
}

// runningCommand is a command under way.
type runningCommand struct {
	p    *cliUser
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  outputBuffer
	err  outputBuffer
	done chan struct{}
	code int
}

func (p *cliUser) startCommand(args ...string) *runningCommand {
	p.t.Helper()
	r := &runningCommand{p: p, done: make(chan struct{})}
	r.cmd = exec.Command(p.program, append([]string{"--config", "c.json"}, args...)...)
	r.cmd.Dir, r.cmd.Env = p.project, p.env
	r.cmd.Stdout, r.cmd.Stderr = io.MultiWriter(&r.out, &p.said), io.MultiWriter(&r.err, &p.said)
	r.cmd.WaitDelay = bound
	var err error
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		p.t.Fatal(err)
	}
	if err := r.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		defer close(r.done)
		_ = r.cmd.Wait() // the code tells
		r.code = r.cmd.ProcessState.ExitCode()
	}()
	p.t.Cleanup(func() {
		_ = r.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-r.done:
		case <-time.After(bound):
			_ = r.cmd.Process.Kill()
			<-r.done
		}
	})
	return r
}

func (r *runningCommand) awaitExit() int {
	r.p.t.Helper()
	select {
	case <-r.done:
	case <-time.After(bound):
		r.p.t.Fatalf("%q goes on\nstdout: %s\nstderr: %s", r.cmd.Args[1:], r.out.String(), r.err.String())
	}
	return r.code
}

// runCommand runs a command to its end and returns what it printed to standard output.
func (p *cliUser) runCommand(code int, args ...string) string {
	p.t.Helper()
	r := p.startCommand(args...)
	_ = r.in.Close()
	if got := r.awaitExit(); got != code {
		p.t.Fatalf("%q ended with %d, not %d\nstdout: %s\nstderr: %s", args, got, code, r.out.String(), r.err.String())
	}
	return r.out.String()
}

// awaitOutput waits until a command has printed something.
func (r *runningCommand) awaitOutput(output *outputBuffer, pattern string) string {
	r.p.t.Helper()
	re := regexp.MustCompile(pattern)
	for deadline := time.Now().Add(bound); ; time.Sleep(10 * time.Millisecond) {
		if found := re.FindString(output.String()); found != "" {
			return found
		}
		if time.Now().After(deadline) {
			r.p.t.Fatalf("%q never shows %s\nstdout: %s\nstderr: %s", r.cmd.Args[1:], pattern, r.out.String(), r.err.String())
		}
	}
}

// openedPage waits for the page that the browser was told to open.
func (p *cliUser) openedPage() string {
	p.t.Helper()
	for deadline := time.Now().Add(bound); ; time.Sleep(10 * time.Millisecond) {
		if b, err := os.ReadFile(p.page); err == nil {
			_ = os.Remove(p.page)
			return string(b)
		}
		if time.Now().After(deadline) {
			p.t.Fatalf("no page was opened; said was %s", p.said.String())
		}
	}
}

// awaitPhase waits until a running up says this of the server.
func (p *cliUser) awaitPhase(up *runningCommand, phase string) {
	p.t.Helper()
	up.awaitOutput(&up.out, `"status":"`+phase+`"`)
}

// statusOf is what auth status says.
func (p *cliUser) statusOf(code int) (status struct{ Server, Kind, State, Who, Where, Status, Todo string }) {
	p.t.Helper()
	var all []json.RawMessage
	if err := json.Unmarshal([]byte(p.runCommand(code, "auth", "status", "--json")), &all); err != nil || len(all) != 1 {
		p.t.Fatalf("auth status: %v, %d", err, len(all))
	}
	if err := json.Unmarshal(all[0], &status); err != nil {
		p.t.Fatal(err)
	}
	return status
}

// storedTokens are the tokens that this person has now, as the store of encrypted files holds them.
func (p *cliUser) storedTokens(server string) []string {
	p.t.Helper()
	files, err := auth.OpenFiles(auth.Options{Dir: filepath.Join(p.home, "state", "mcpvisor", "secrets"),
		KeyFile: filepath.Join(p.home, "config", "mcpvisor", "secrets.key")})
	if err != nil {
		p.t.Fatal(err)
	}
	raw, err := files.Get(p.t.Context(), "oauth protected "+server)
	if err != nil {
		p.t.Fatal(err)
	}
	var record struct{ Access, Refresh string }
	if err := json.Unmarshal(raw, &record); err != nil || record.Access == "" || record.Refresh == "" {
		p.t.Fatalf("what is stored is not understood: %v", err)
	}
	return []string{record.Access, record.Refresh}
}

// checkNoLeak fails if a secret is anywhere but in the store: in what commands printed, in a file in the clear, in the
// arguments of a process.
func (p *cliUser) checkNoLeak(secrets []string) {
	p.t.Helper()
	look := func(where string, text []byte) {
		for _, s := range secrets {
			if bytes.Contains(text, []byte(s)) {
				p.t.Errorf("a token stands in %s", where)
			}
		}
	}
	look("what commands print", []byte(p.said.String()))
	files := 0
	err := filepath.WalkDir(p.home, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, "chromium") {
			return err
		}
		b, err := os.ReadFile(path)
		look(path, b)
		files++
		return err
	})
	if err != nil || files < 4 {
		p.t.Errorf("%d files were looked at: %v", files, err)
	}
	if runtime.GOOS == "linux" {
		lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, path := range lines {
			b, _ := os.ReadFile(path) // it may have ended
			look(path, b)
		}
	}
}

// TestLoginCommand is the whole way: up finds a server that asks for a sign-in; login in another process, by way of the
// browser; up connects by itself; logout, and it asks again.
func TestLoginCommand(t *testing.T) {
	as := startAuthServer(t)
	server := startMCP(t, as)
	p := newCLIUser(t, server.URL)
	checkWholeSignIn(t, as, p, server, func(page string) {
		if err := followSignIn(t.Context(), page); err != nil {
			t.Fatal(err)
		}
	})
	if seen := as.Counts(t); seen.Registered != 1 || seen.Code.Granted != 1 {
		t.Errorf("the authorization server saw %+v", seen)
	}
}

func checkWholeSignIn(t *testing.T, as *peers.AuthServer, p *cliUser, server *mcpServer, browse func(page string)) {
	t.Helper()
	up := p.startCommand("up", "--json")
	p.awaitPhase(up, "needs-auth")
	if st := p.statusOf(1); st.State != "signed-out" || st.Status != "needs-auth" ||
		st.Todo != "sign in: mcpvisor login protected" {
		t.Errorf("before the sign-in: %+v", st)
	}
	if why := p.runCommand(0, "why", "protected"); !strings.Contains(why, "mcpvisor login protected") {
		t.Errorf("why does not say what to do:\n%s", why)
	}
	r := p.startCommand("login", "protected")
	page := p.openedPage()
	if shown := r.awaitOutput(&r.err, `(?m)^http\S+$`); shown != page {
		t.Errorf("it shows %s and opens %s", shown, page)
	}
	browse(page)
	if code := r.awaitExit(); code != 0 {
		t.Fatalf("login ended with %d: %s", code, r.err.String())
	}
	if out := r.out.String(); !strings.Contains(out, "protected: signed in") ||
		!strings.Contains(out, "protected: connected  protected 1 · 2 tools") {
		t.Errorf("login says %s", out)
	}
	p.awaitPhase(up, "connected")
	if n := strings.Count(up.out.String(), `"other credentials have appeared"`); n > 1 {
		t.Errorf("up has noticed %d times", n)
	}
	if out := p.runCommand(0, "call", "protected", "echo"); out != "echo\n" {
		t.Errorf("echo answers %q", out)
	}
	if st := p.statusOf(0); st.State != "signed-in" || st.Status != "connected" || st.Kind != "oauth" ||
		!strings.HasPrefix(st.Where, "encrypted files in ") {
		t.Errorf("after the sign-in: %+v", st)
	}
	p.runCommand(0, "auth", "status")
	p.runCommand(0, "list", "--json")
	p.runCommand(0, "why", "protected", "--json")
	secrets := p.storedTokens(server.URL)
	p.checkNoLeak(secrets)
	if out := p.runCommand(0, "logout", "protected"); !strings.Contains(out, "signed out, and revoked") ||
		!strings.Contains(out, "protected: needs-auth") {
		t.Errorf("logout says %s", out)
	}
	p.runCommand(3, "call", "protected", "echo")
	if token, err := as.Check(secrets[0]); err != nil || token.Active {
		t.Errorf("the token is still good: %+v, %v", token, err)
	}
	if st := p.statusOf(1); st.State != "signed-out" {
		t.Errorf("after the sign-out: %+v", st)
	}
	_ = up.cmd.Process.Signal(os.Interrupt)
	if code := up.awaitExit(); code != 0 {
		t.Errorf("up ended with %d: %s", code, up.err.String())
	}
	p.checkNoLeak(secrets)
}

// TestLoginPasted: no browser here; what the person pastes comes through a pipe, after something useless. Without an up
// the server is connected once.
func TestLoginPasted(t *testing.T) {
	as := startAuthServer(t)
	server := startMCP(t, as)
	p := newCLIUser(t, server.URL)
	r := p.startCommand("login", "protected", "--no-browser", "--json", "--scope", "mcp:write")
	page := r.awaitOutput(&r.err, `(?m)^http\S+$`)
	back := strings.TrimSuffix(r.awaitOutput(&r.err, `http://127\.0\.0\.1:\d+/:`), ":")
	fmt.Fprintln(r.in, "http://127.0.0.1/callback?code=x&state=another")
	r.awaitOutput(&r.err, "the address of another sign-in")
	last, err := followRedirects(t.Context(), page, stopBefore(back))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(r.in, last)
	if code := r.awaitExit(); code != 0 {
		t.Fatalf("login ended with %d: %s", code, r.err.String())
	}
	var said struct {
		Needed bool
		Status string
		Tools  int
		Auth   struct{ State string }
	}
	if err := json.Unmarshal([]byte(r.out.String()), &said); err != nil || !said.Needed || said.Status != "connected" ||
		said.Tools != 2 || said.Auth.State != "signed-in" {
		t.Errorf("login --json: %v: %s", err, r.out.String())
	}
	if _, err := os.Stat(p.page); err == nil {
		t.Error("a browser was opened all the same")
	}
	p.runCommand(0, "call", "protected", "write")
	secrets := p.storedTokens(server.URL)
	p.checkNoLeak(secrets)
	// Again, as somebody who wants less: nothing is in the way.
	second := p.startCommand("login", "protected")
	if err := followSignIn(t.Context(), p.openedPage()); err != nil {
		t.Fatal(err)
	}
	if code := second.awaitExit(); code != 0 {
		t.Errorf("a second login ended with %d: %s", code, second.err.String())
	}
	p.checkNoLeak(append(secrets, p.storedTokens(server.URL)...))
	if out := p.runCommand(0, "logout", "protected"); !strings.Contains(out, "signed out") {
		t.Error(out)
	}
	if out := p.runCommand(0, "logout", "protected"); !strings.Contains(out, "nobody is signed in") {
		t.Error(out)
	}
}

// TestLoginBrokenOff: whoever interrupts or kills a login at any of its prompts leaves a state in which the next one
// works, and what was there before is still good.
func TestLoginBrokenOff(t *testing.T) {
	as := startAuthServer(t)
	server := startMCP(t, as)
	p := newCLIUser(t, server.URL)
	shown := func(r *runningCommand) { p.openedPage() }
	awaitQuestion := func(r *runningCommand) {
		p.openedPage()
		fmt.Fprintln(r.in, "http://127.0.0.1/callback?code=x&state=another")
		r.awaitOutput(&r.err, "another sign-in")
	}
	for _, before := range []string{"signed-out", "signed-in"} {
		for name, until := range map[string]func(*runningCommand){"shown": shown, "asked again": awaitQuestion} {
			for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
				t.Run(fmt.Sprintf("%s, %s, %v", before, name, sig), func(t *testing.T) {
					r := p.startCommand("login", "protected")
					until(r)
					started := time.Now()
					_ = r.cmd.Process.Signal(sig)
					code := r.awaitExit()
					if sig == syscall.SIGINT && (code != 130 || !strings.Contains(r.err.String(), "interrupted")) {
						t.Errorf("interrupted, it ended with %d after %v: %s", code, time.Since(started), r.err.String())
					}
				})
			}
		}
		if before == "signed-out" {
			p.runCommand(3, "call", "protected", "echo")
			r := p.startCommand("login", "protected")
			if err := followSignIn(t.Context(), p.openedPage()); err != nil {
				t.Fatal(err)
			}
			if code := r.awaitExit(); code != 0 {
				t.Fatalf("login ended with %d: %s", code, r.err.String())
			}
		}
	}
	p.runCommand(0, "call", "protected", "echo")
	r := p.startCommand("login", "protected", "--timeout", "8s") // the page comes within it
	p.openedPage()
	if code := r.awaitExit(); code != 1 || !strings.Contains(r.err.String(), "in time") {
		t.Errorf("a login that nobody finishes ended with %d: %s", code, r.err.String())
	}
	p.runCommand(0, "call", "protected", "echo")
}

// TestLoginKilledWithTheCode: a login that is killed while it exchanges the code leaves a state in which the next one
// works.
func TestLoginKilledWithTheCode(t *testing.T) {
	as := startAuthServer(t)
	server := startMCP(t, as)
	p := newCLIUser(t, server.URL)
	for delay := time.Duration(0); delay < 40*time.Millisecond; delay += 10 * time.Millisecond {
		r := p.startCommand("login", "protected")
		if err := followSignIn(t.Context(), p.openedPage()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(delay) // what is hit differs from run to run; what must hold does not
		_ = r.cmd.Process.Kill()
		r.awaitExit()
	}
	r := p.startCommand("login", "protected")
	if err := followSignIn(t.Context(), p.openedPage()); err != nil {
		t.Fatal(err)
	}
	if code := r.awaitExit(); code != 0 {
		t.Fatalf("login ended with %d: %s", code, r.err.String())
	}
	p.runCommand(0, "call", "protected", "echo")
	p.checkNoLeak(p.storedTokens(server.URL))
}

// TestLoginInTheKeyring: under a real secret service the sign-in is in the keyring, and nowhere else.
func TestLoginInTheKeyring(t *testing.T) {
	for _, program := range []string{"dbus-daemon", "gnome-keyring-daemon"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("NOT TESTED: a login into the keyring. %s is not installed; on Debian: apt install dbus-daemon gnome-keyring",
				program)
		}
	}
	as := startAuthServer(t)
	server := startMCP(t, as)
	p := newCLIUser(t, server.URL)
	p.startKeyring()
	r := p.startCommand("login", "protected")
	if err := followSignIn(t.Context(), p.openedPage()); err != nil {
		t.Fatal(err)
	}
	if code := r.awaitExit(); code != 0 || !strings.Contains(r.out.String(), "kept in keyring") {
		t.Fatalf("login ended with %d: %s%s", code, r.out.String(), r.err.String())
	}
	if st := p.statusOf(0); st.State != "signed-in" || st.Where != "keyring" {
		t.Errorf("%+v", st)
	}
	p.runCommand(0, "call", "protected", "echo")
	if leftovers, _ := filepath.Glob(filepath.Join(p.home, "state", "mcpvisor", "secrets", "*.secret")); len(leftovers) > 0 {
		t.Errorf("there are files as well: %q", leftovers)
	}
	p.runCommand(0, "logout", "protected")
	p.runCommand(3, "call", "protected", "echo")
}

// startKeyring starts a bus and a secret service on it, with a keyring that is open.
func (p *cliUser) startKeyring() {
	p.t.Helper()
	socket := ""
	for _, kv := range p.env {
		if dir, ok := strings.CutPrefix(kv, "XDG_RUNTIME_DIR="); ok {
			socket = filepath.Join(dir, "bus")
		}
	}
	address := "unix:path=" + socket
	p.env = append(p.env, "DBUS_SESSION_BUS_ADDRESS="+address, "XDG_DATA_HOME="+filepath.Join(p.home, "data"))
	for _, words := range [][]string{
		{"dbus-daemon", "--session", "--nofork", "--nopidfile", "--address=" + address},
		{"gnome-keyring-daemon", "--foreground", "--unlock", "--components=secrets"},
	} {
		cmd := exec.Command(words[0], words[1:]...)
		cmd.Env, cmd.Stdin = p.env, strings.NewReader("a password")
		if err := cmd.Start(); err != nil {
			p.t.Fatal(err)
		}
		p.t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // it was killed
		})
		for deadline := time.Now().Add(bound); ; time.Sleep(10 * time.Millisecond) {
			// The socket is there a moment before the bus listens on it.
			if conn, err := net.Dial("unix", socket); err == nil {
				_ = conn.Close()
				break
			}
			if time.Now().After(deadline) {
				p.t.Fatal("the bus does not start")
			}
		}
	}
	// The bus starts a secret service when one is asked for, and that would be a closed one: nothing is asked before ours
	// is there.
	bus, err := dbus.Connect(address)
	if err != nil {
		p.t.Fatal(err)
	}
	defer bus.Close()
	for deadline := time.Now().Add(bound); ; time.Sleep(10 * time.Millisecond) {
		var there bool
		if bus.BusObject().Call("org.freedesktop.DBus.NameHasOwner", 0, "org.freedesktop.secrets").Store(&there) == nil && there {
			return
		}
		if time.Now().After(deadline) {
			p.t.Fatal("the keyring does not start")
		}
	}
}
