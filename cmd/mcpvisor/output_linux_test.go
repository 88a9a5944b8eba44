package main

import (
	"bytes"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
)

// printing says with which words each command prints something, in a project with the server "one" that a mcpvisor up keeps.
// Empty means that its output is not its result, or is tested elsewhere.
var printing = map[string]string{
	"list": "list", "tools": "tools one", "call": "call one echo text=x", "resources": "resources one", "read": "read text://hello",
	"prompts": "prompts one", "prompt": "prompt one greet name=Ann", "complete": "complete one --prompt greeting name A",
	"ping": "ping one", "logs": "logs one", "why": "why one", "get": "get one", "reload": "reload",
	"auth status": "auth status --json", "approve": "approve", "diff": "diff one", "permissions": "permissions",
	"permissions test": "permissions test one echo", "audit": "audit", "config check": "config check",
	"config isolation": "config isolation", "chaos scenarios": "chaos scenarios", "chaos faults": "chaos faults",
	"version": "version", "help": "help", "init": "init", "doctor": "doctor", "completion bash": "completion bash", "completion zsh": "completion zsh",
	"completion fish": "completion fish", "completion powershell": "completion powershell",

	"clients": "clients", "down": "down",

	"connect": "", "clients connect": "", "clients disconnect": "", "up": "", "serve": "", "import": "", "chaos proxy ctl": "", "chaos proxy faults": "", "add": "", "add-json": "", "remove": "", "enable": "", "disable": "", "reconnect": "", "search": "", "login": "",
	"logout": "", "permissions allow": "", "permissions ask": "", "permissions deny": "", "permissions remove": "",
	"chaos": "", "chaos sim": "", "chaos run": "", "chaos check": "", "chaos score": "", "chaos proxy": "", "chaos report": "",
}

// offering is the configuration with the one server of these tests.
const offering = `{"mcpServers": {"one": {"command": "fixture", "args": ["mcp-fixture", "offers"], "era": "legacy"}}}`

// TestEveryCommandTellsOfLostOutput runs every command twice. A new command fails until printing has it.
// Output on a full disk must give exit code 1 and a sentence; output to a reader who has gone must give neither.
func TestEveryCommandTellsOfLostOutput(t *testing.T) {
	t.Parallel()
	p := newPlace(t, offering)
	up := p.start("up", "--config", "c.json")
	up.says("one.*connected")
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		for _, sub := range c.Commands() {
			if sub.Hidden {
				continue
			}
			walk(sub)
			path := strings.TrimPrefix(sub.CommandPath(), "mcpvisor ")
			line, known := printing[path]
			if sub.HasSubCommands() && line == "" {
				continue
			}
			if !known {
				t.Errorf("how is %q made to print?", path)
			}
			if line == "" {
				continue
			}
			for _, form := range [][]string{nil, {"--json"}} {
				if form != nil && sub.Flags().Lookup("json") == nil {
					continue
				}
				args := append(append(strings.Fields(line), form...), "--config", "c.json")
				if code, said := p.into("/dev/full", args); code != exit.Failed || !strings.Contains(said, "the output could not be written: no space left on device") {
					t.Errorf("%q on a full disk: exit code %d, %q", args, code, said)
				}
				if code, said := p.into("", args); strings.Contains(said, "written") || strings.Contains(said, "pipe") || code > 1 {
					t.Errorf("%q to a reader who has gone: exit code %d, %q", args, code, said)
				}
			}
		}
	}
	walk(newRoot(&cli.Options{Streams: terminal.Streams{Out: &bytes.Buffer{}, Err: &bytes.Buffer{}}}))
	up.signal(syscall.SIGTERM)
	up.ends()
}

// into runs a command whose output goes into the file, or without a path into a pipe whose reader is closed.
func (p *place) into(path string, args []string) (code int, stderr string) {
	p.t.Helper()
	cmd := p.command(args...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if path == "" {
		r, w, err := os.Pipe()
		if err != nil {
			p.t.Fatal(err)
		}
		defer w.Close()
		r.Close()
		cmd.Stdout = w
	} else {
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			p.t.Fatal(err)
		}
		defer f.Close()
		cmd.Stdout = f
	}
	return exitCode(cmd.Run()), said.String()
}

// TestUpWhoseLogIsNotRead checks that a standard error which is not read blocks neither calls nor the end of up.
func TestUpWhoseLogIsNotRead(t *testing.T) {
	t.Parallel()
	p := newPlace(t, justOne)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := unix.FcntlInt(w.Fd(), unix.F_SETPIPE_SZ, os.Getpagesize()); err != nil {
		t.Fatal(err)
	}
	cmd := p.command("up", "--config", "c.json", "--log-level", "debug")
	cmd.Stderr = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	p.grown(3)
	for range 12 { // each writes some lines of the log
		if out, err := p.command("reconnect", "one", "--config", "c.json").CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	if out, err := p.command("call", "one", "echo", "text=x", "--config", "c.json").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	ended := make(chan int, 1)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	go func() { ended <- exitCode(cmd.Wait()) }()
	select {
	case code := <-ended:
		if code != 0 {
			t.Errorf("exit code %d", code)
		}
	case <-time.After(patience):
		_ = cmd.Process.Kill()
		t.Error("it does not end")
	}
}
