package stdio_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/stdio"
	"github.com/mcpvisor/mcpvisor/transports/transporttest"
)

// The tests need real processes that misbehave. They are this test binary, started again with a role.
const roleVariable = "TRANSPORTS_TEST_ROLE"

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "guardian" { // ExampleStartGuardian
		roles["guardian"]("")
		return
	}
	role, arg, _ := strings.Cut(os.Getenv(roleVariable), ":")
	if play, ok := roles[role]; ok {
		play(arg)
		os.Exit(0)
	}
	if role != "" {
		fmt.Fprintf(os.Stderr, "no such role: %s\n", role)
		os.Exit(99)
	}
	os.Exit(m.Run())
}

var roles = map[string]func(arg string){
	"script": func(string) { playScript() },
	// echo gives every line back, as cheaply as possible.
	"echo": func(string) {
		in, out := bufio.NewReaderSize(os.Stdin, 64<<10), bufio.NewWriterSize(os.Stdout, 64<<10)
		for {
			line, err := in.ReadSlice('\n')
			if err != nil && err != bufio.ErrBufferFull {
				return
			}
			_, _ = out.Write(line)
			if in.Buffered() == 0 {
				_ = out.Flush()
			}
		}
	},
	// exit ends at once.
	"exit": func(arg string) {
		code, _ := strconv.Atoi(arg)
		os.Exit(code)
	},
	// deaf hears neither the end of its input nor SIGTERM.
	"deaf": func(string) { ignoreSignalsRole() },
	// stubborn ends on SIGTERM, not on the end of its input, and says so.
	"stubborn": func(string) {
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		fmt.Println(`{"ready":true}`)
		<-c
		fmt.Println(`{"asked":true}`)
	},
	// installer does not read its input, and takes a moment after SIGTERM to take back what it has begun. With an argument it
	// says something first, as a server does that was installed.
	"installer": func(arg string) {
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGTERM)
		if arg != "" {
			fmt.Println(arg)
		}
		fmt.Fprintln(os.Stderr, "ready")
		<-c
		time.Sleep(300 * time.Millisecond)
	},
	// launcher starts another process, as npx does, and lives until its input ends.
	"launcher": func(arg string) {
		pid := startRole(arg)
		fmt.Printf("{\"child\":%d}\n", pid)
		_, _ = io.Copy(io.Discard, os.Stdin)
	},
	// runaway starts another process that holds its output, and ends.
	"runaway": func(arg string) {
		pid := startRole(arg)
		fmt.Printf("{\"child\":%d}\n", pid)
		os.Exit(4)
	},
	// leaves starts another process that holds its output, and ends well.
	"leaves": func(arg string) { fmt.Printf("child %d\n", startRole(arg)) },
	// family starts another deaf process, writes its number into a file, and is deaf itself.
	"family": func(file string) {
		_ = os.WriteFile(file, strconv.AppendInt(nil, int64(startRole("deaf")), 10), 0o600)
		ignoreSignalsRole()
	},
	// input says how many bytes it could read.
	"input": func(string) {
		n, _ := io.Copy(io.Discard, os.Stdin)
		fmt.Print(n)
	},
	// endless writes one line for ever.
	"endless": func(arg string) {
		fmt.Print(arg)
		piece := bytes.Repeat([]byte("x"), 64<<10)
		for {
			if _, err := os.Stdout.Write(piece); err != nil {
				return
			}
		}
	},
	// babble writes messages for ever.
	"babble": func(string) {
		for i := 0; ; i++ {
			if _, err := fmt.Printf("{\"n\":%d}\n", i); err != nil {
				return
			}
		}
	},
	// mute closes one of its pipes and lives on.
	"mute": func(arg string) {
		if arg == "stdin" {
			_ = os.Stdin.Close()
		} else {
			_ = os.Stdout.Close()
		}
		ignoreSignalsRole()
	},
	// unfinished answers without a last newline.
	"unfinished": func(arg string) { fmt.Print(arg) },
	// wordy fills standard error before it serves.
	"wordy": func(arg string) {
		n, _ := strconv.Atoi(arg)
		for i := range n {
			fmt.Fprintf(os.Stderr, "log line %d\n", i)
		}
		playScript()
	},
	// print shows its arguments, directory and one variable.
	"print": func(arg string) {
		dir, _ := os.Getwd()
		line, _ := json.Marshal(map[string]any{
			"args": os.Args[1:], "dir": dir, "pwd": os.Getenv("PWD"), "env": os.Getenv(arg),
		})
		fmt.Printf("%s\n", line)
	},
	"guardian": func(string) {
		if err := stdio.RunGuardian(os.Stdin); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	},
}

func ignoreSignalsRole() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	fmt.Println(`{"ready":true}`)
	time.Sleep(5 * time.Minute) // not for ever: a test that fails may leave it
}

// startRole starts this binary in another role, in the same process group and with the same pipes.
func startRole(role string) int {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+role)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(98)
	}
	return cmd.Process.Pid
}

// asRole returns the configuration that starts this test binary as a server with that role.
func asRole(role string, env ...string) stdio.Config {
	exe, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return stdio.Config{
		Command: exe,
		Env: append([]string{
			roleVariable + "=" + role, "PATH=" + os.Getenv("PATH"),
			"GORACE=atexit_sleep_ms=0", // a binary with the race detector sleeps 1 s at its end otherwise
		}, env...),
		Grace: 2 * time.Second,
	}
}

// playScript is the peer of the contract suite. It prints its secret to its log, as servers do.
func playScript() {
	if s := os.Getenv("PEER_TOKEN"); s != "" {
		fmt.Fprintf(os.Stderr, "cannot log in with %s\n", s)
	}
	in := bufio.NewReaderSize(os.Stdin, 64<<10)
	port := &stdioPort{}
	_ = (&transporttest.Script{}).Serve(context.Background(), port, func() ([]byte, error) {
		return in.ReadBytes('\n')
	})
}

type stdioPort struct{ mu sync.Mutex }

func (p *stdioPort) Write(msg []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, err := os.Stdout.Write(append(msg, '\n'))
	return err
}

func (p *stdioPort) Push(msg []byte) error   { return p.Write(msg) }
func (p *stdioPort) Noise(line []byte) error { return p.Write(line) }
func (p *stdioPort) Die() {
	p.mu.Lock() // for ever: nothing is half written
	os.Exit(3)
}
