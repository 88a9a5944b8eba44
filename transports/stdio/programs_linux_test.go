package stdio_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

// setuidVariable names a copy of "id" that belongs to root and is set-uid: only root can make one, so TestAsAnOrdinaryUser does.
const setuidVariable = "TRANSPORTS_TEST_SETUID"

func init() {
	ordinary = append(ordinary, "TestProgramsThatWorkInAServer")
	attempts["setuid"] = func(program string) error {
		out, err := runProgram(program, "-u")
		if err == nil && strings.TrimSpace(out) != "0" {
			err = errors.New("it runs as " + strings.TrimSpace(out))
		}
		return err
	}
	// Whether a user may do anything with sudo is the machine's affair. That sudo gets as far as to ask for that is not.
	attempts["sudo"] = func(string) error {
		out, err := runProgram("sudo", "-n", "true")
		if err != nil && (strings.Contains(out, "password is required") || strings.Contains(out, "may not run sudo")) {
			err = nil
		}
		return err
	}
	attempts["bwrap"] = func(string) error {
		_, err := runProgram("bwrap", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all", "--die-with-parent", "true")
		return err
	}
	// A browser without --no-sandbox shows nothing where its sandbox cannot be made.
	attempts["chromium"] = func(home string) error {
		for _, name := range []string{"HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "TMPDIR"} {
			_ = os.Setenv(name, home)
		}
		out, err := runProgram("chromium", "--headless", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync",
			"--disable-component-update", "--disable-crash-reporter", "--disable-breakpad", "--no-proxy-server", "--disable-dev-shm-usage",
			"--user-data-dir="+home+"/data", "--dump-dom", "data:text/html,<p>shown</p>")
		if err == nil && !strings.Contains(out, "<p>shown</p>") {
			err = errors.New("nothing is shown: " + out)
		}
		return err
	}
	// The key is with the agent, whose socket is in the environment; its public half, with which one asks for it, in a file.
	attempts["agent"] = func(public string) error {
		cmd := exec.Command("ssh-keygen", "-q", "-Y", "sign", "-f", public, "-n", "test")
		cmd.Stdin = strings.NewReader("text")
		out, err := cmd.CombinedOutput()
		if err == nil && !bytes.Contains(out, []byte("BEGIN SSH SIGNATURE")) {
			err = errors.New("it signed nothing")
		}
		if err != nil {
			err = fmt.Errorf("%w: %s", err, out)
		}
		return err
	}
	// gpg starts an agent of its own and leaves it to the machine; it is ended here.
	attempts["gpg"] = func(home string) error {
		if err := os.Setenv("GNUPGHOME", home); err != nil {
			return err
		}
		defer func() { _ = exec.Command("gpgconf", "--kill", "all").Run() }()
		text := filepath.Join(home, "text")
		if err := os.WriteFile(text, []byte("text"), 0o600); err != nil {
			return err
		}
		_, err := runProgram("gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", "a@example.com", "ed25519", "sign", "never")
		if err == nil {
			_, err = runProgram("gpg", "--batch", "--quiet", "--output", text+".gpg", "--sign", text)
		}
		if err == nil {
			_, err = runProgram("gpg", "--batch", "--quiet", "--verify", text+".gpg")
		}
		return err
	}
}

// runProgram runs a program, and is what it said. An error repeats it.
func runProgram(name string, args ...string) (string, error) {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return string(out), err
}

// setuidCopy makes that copy in dir, and is the variable that names it.
func setuidCopy(t *testing.T, dir string) string {
	t.Helper()
	program, err := exec.LookPath("id")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "setuid-id")
	if err := os.WriteFile(path, b, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	return setuidVariable + "=" + path
}

// agent starts an agent for keys with one key in it, as a person has one, and is the key's public half and the variable
// that names the agent.
func agent(t *testing.T, dir string) (public, variable string) {
	t.Helper()
	socket, key := filepath.Join(dir, "s"), filepath.Join(dir, "key")
	cmd := exec.Command("ssh-agent", "-D", "-a", socket)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	variable = "SSH_AUTH_SOCK=" + socket
	if _, err := runProgram("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(childBound); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(socket); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	add := exec.Command("ssh-add", "-q", key)
	add.Env = append(os.Environ(), variable)
	if out, err := add.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.Remove(key); err != nil { // the agent alone has it now
		t.Fatal(err)
	}
	return key + ".pub", variable
}

// shortDir is a folder whose name leaves room for that of a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "p")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// What people's servers run goes on working without isolation, and each kind of isolation takes what its page says.
func TestProgramsThatWorkInAServer(t *testing.T) {
	in := func(_ *testing.T, dir string) (arg, env string) { return dir, "" }
	for _, p := range []struct {
		name, needs string
		// works are the kinds under which it does, and refused is a part of what is said under the others.
		works, refused string
		// start makes what the program needs in dir, and is the argument of the attempt and a variable for the server.
		start func(t *testing.T, dir string) (arg, env string)
	}{
		{"setuid", "", "without", "it runs as |permission denied", func(t *testing.T, _ string) (string, string) {
			if os.Getenv(setuidVariable) == "" {
				t.Skip("NOT TESTED: set-uid programs in a server. Only root can make one for this test")
			}
			return os.Getenv(setuidVariable), ""
		}},
		{"sudo", "sudo", "without", "no new privileges", in},
		{"bwrap", "bwrap", "without", "(?i)namespace|not permitted|permission denied", in},
		{"chromium", "chromium", "without true browser", "No usable sandbox", in},
		{"agent", "ssh-agent ssh-add ssh-keygen", "without true write browser loopback", "No private key found", agent},
		{"gpg", "gpg gpg-agent gpgconf", "without true write browser loopback", "can't connect to the agent", in},
	} {
		for _, kind := range []string{"without", "true", "write", "browser", "none", "loopback"} {
			t.Run(p.name+"/"+kind, func(t *testing.T) {
				for program := range strings.FieldsSeq(p.needs) {
					if _, err := exec.LookPath(program); err != nil {
						t.Skip("NOT TESTED: " + p.name + " in a server. " + program + " is not installed")
					}
				}
				if os.Getuid() == 0 {
					t.Skip("it is run as an ordinary user by TestAsAnOrdinaryUser")
				}
				if no := stdio.Capabilities(t.Context()).NoNamespace; no != "" && (p.name == "bwrap" || p.name == "chromium") {
					t.Skip("NOT TESTED: " + p.name + " in a server. " + no)
				}
				t.Parallel()
				dir := shortDir(t)
				arg, env := p.start(t, dir)
				cfg := asRole("attempts:" + p.name + " " + arg)
				if env != "" {
					cfg.Env = append(cfg.Env, env)
				}
				if kind != "without" {
					i := isolationKinds(dir)[kind]
					skipWithout(t, i)
					needsLandlock(t, 2)
					cfg.Isolation = &i
				}
				said := map[string]string{}
				if err := json.Unmarshal([]byte(startServer(t, cfg).waitLine(0)), &said); err != nil {
					t.Fatal(err)
				}
				works := slices.Contains(strings.Fields(p.works), kind)
				if got := said[p.name]; works && got != "ok" || !works && !regexp.MustCompile(p.refused).MatchString(got) {
					t.Errorf("it works here: %v, and it said: %s", works, got)
				}
			})
		}
	}
}
