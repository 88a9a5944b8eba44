package live

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

// The arguments of a process that is to become a peer: the marker, what it becomes, the address of the harness and the
// server's name. No flag of a test binary looks like the marker.
const (
	marker      = "chaos-peer"
	becomePeer  = "server"
	becomeChild = "child"
)

// keyVariable holds what lets a child in. It is no argument, because those can be read by everybody on the machine.
const keyVariable = "CHAOS_PEER_KEY"

// orphaned is the exit code of a child whose harness is gone.
const orphaned = 70

// Main makes the process a peer if args (without the program's name) ask for that, and ends it then with its exit code.
// It returns false at once if they do not. It never returns true: the result lets a main read naturally.
func Main(args []string) bool {
	if len(args) == 0 || args[0] != marker {
		return false
	}
	if len(args) < 4 {
		fmt.Fprintln(os.Stderr, marker+": this is started by a chaos run, and by nobody else")
		os.Exit(64)
	}
	switch args[1] {
	case becomePeer:
		os.Exit(runShell(args[2], args[3]))
	case becomeChild:
		os.Exit(runOffspring(args[2], args[3]))
	}
	os.Exit(64)
	return true
}

// arguments are those of a peer.
func arguments(become, address, server string) []string {
	return []string{marker, become, address, server}
}

// dialHarness opens the control connection and says who we are.
func dialHarness(address, server string, spawned bool) (net.Conn, *wire, error) {
	network := "tcp"
	if strings.HasPrefix(address, "@") {
		network = "unix"
	}
	c, err := net.DialTimeout(network, address, 10*time.Second)
	if err != nil {
		return nil, nil, err
	}
	w := newWire(c)
	err = w.writeJSON(frameHello, greeting{Server: server, Key: os.Getenv(keyVariable), PID: os.Getpid(), Spawned: spawned})
	return c, w, err
}

// shell is a peer's process: it has files and signals, and what it does with them is decided elsewhere.
type shell struct {
	address, server string
	control         *wire

	hearing *sync.Cond // guards deaf
	deaf    bool

	out, err *outlet
}

// runShell is the whole life of a peer's process. It ends when it is told to, and when its control connection does: so
// that nothing is left of a harness that was killed.
func runShell(address, server string) int {
	signal.Ignore(syscall.SIGPIPE, syscall.SIGINT, syscall.SIGHUP)
	asked := make(chan os.Signal, 8)
	signal.Notify(asked, syscall.SIGTERM)
	_, control, err := dialHarness(address, server, false)
	if err != nil {
		fmt.Fprintln(os.Stderr, marker+": the harness cannot be reached:", err)
		return orphaned
	}
	s := &shell{
		address: address, server: server, control: control, hearing: sync.NewCond(&sync.Mutex{}),
		out: newOutlet(os.Stdout), err: newOutlet(os.Stderr),
	}
	go s.readInput(os.Stdin)
	go func() {
		for range asked {
			_ = control.write(frameAsked, nil) // an error is the harness' end, which obey sees
		}
	}()
	return s.obey()
}

// obey does what the harness says until that is to exit.
func (s *shell) obey() int {
	for {
		kind, body, err := s.control.read()
		if err != nil {
			return orphaned
		}
		switch kind {
		case framePut:
			s.out.add(flood{Bytes: body})
		case frameFlood:
			var f flood
			if json.Unmarshal(body, &f) != nil {
				return orphaned
			}
			if f.Stderr {
				s.err.add(f)
			} else {
				s.out.add(f)
			}
		case frameDeaf, frameHear:
			s.hearing.L.Lock()
			s.deaf = kind == frameDeaf
			s.hearing.L.Unlock()
			s.hearing.Broadcast()
		case frameSpawn:
			var o offspring
			if json.Unmarshal(body, &o) == nil {
				s.spawn(o)
			}
		case frameExit:
			var e exit
			_ = json.Unmarshal(body, &e) // its zero value is an exit as good as any
			s.out.finish()
			s.err.finish()
			if e.Signal != "" {
				die(e.Signal)
			}
			return e.Code
		default:
		}
	}
}

// readInput passes on what the manager writes, until it closes. A line has no limit here: the manager wrote it.
func (s *shell) readInput(in io.Reader) {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		s.hearing.L.Lock()
		for s.deaf {
			s.hearing.Wait()
		}
		s.hearing.L.Unlock()
		line, err := r.ReadBytes('\n')
		if n := len(line); n > 0 {
			_ = s.control.write(frameLine, line)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				fmt.Fprintln(os.Stderr, marker+":", err)
			}
			_ = s.control.write(frameEOF, nil)
			return
		}
	}
}

// spawn starts a child that holds our output open and lives for a while, whatever becomes of us.
func (s *shell) spawn(o offspring) {
	self, err := os.Executable()
	if err != nil {
		return
	}
	cmd := exec.Command(self, append(arguments(becomeChild, s.address, s.server), o.For.String())...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if o.OwnSession {
		cmd.SysProcAttr = ownSession()
	}
	if cmd.Start() != nil {
		return
	}
	o.PID = cmd.Process.Pid
	_ = s.control.writeJSON(frameSpawned, o)
	go func() { _ = cmd.Wait() }() // so that it is no zombie while we live
}

// runOffspring is what a server has started: it does nothing, for a time. It says that it is there, and it ends with the
// harness.
func runOffspring(address, server string) int {
	signal.Ignore(syscall.SIGPIPE, syscall.SIGINT, syscall.SIGHUP)
	_, control, err := dialHarness(address, server, true)
	if err != nil {
		return orphaned
	}
	if d, err := time.ParseDuration(os.Args[len(os.Args)-1]); err == nil {
		time.AfterFunc(d, func() { os.Exit(0) })
	}
	for {
		if _, _, err := control.read(); err != nil {
			return 0
		}
	}
}
