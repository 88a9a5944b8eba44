package performer

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

// Marker is the first argument of a process that is to become a peer; its role, the address of the harness and the server's name
// follow. No flag of a test binary looks like it.
const Marker = "chaos-peer"

// The roles of a peer.
const (
	becomePeer  = "server"
	becomeChild = "child"
)

// keyVariable is the environment variable with the key of the greeting. Arguments would show it to every user of the machine.
const keyVariable = "CHAOS_PEER_KEY"

// exitOrphaned is the exit code of a child that cannot reach its harness, or has lost it.
const exitOrphaned = 70

// Main turns the process into a peer if args (without the program's name) ask for it, and exits with the peer's code. Otherwise
// it returns false at once. It never returns true; the result only lets a caller write an if.
func Main(args []string) bool {
	if len(args) == 0 || args[0] != Marker {
		return false
	}
	if len(args) < 4 {
		fmt.Fprintln(os.Stderr, Marker+": this is started by a chaos run, and by nobody else")
		os.Exit(64)
	}
	switch args[1] {
	case becomePeer:
		os.Exit(runPeer(args[2], args[3]))
	case becomeChild:
		os.Exit(runSpawnedChild(args[2], args[3]))
	}
	os.Exit(64)
	return true
}

// childArguments returns the command line of a child.
func childArguments(become, address, server string) []string {
	return []string{Marker, become, address, server}
}

// dialHarness opens the control connection and sends the greeting.
func dialHarness(address, server string, spawned bool) (net.Conn, *controlConn, error) {
	network := "tcp"
	if strings.HasPrefix(address, "@") {
		network = "unix"
	}
	c, err := net.DialTimeout(network, address, 10*time.Second)
	if err != nil {
		return nil, nil, err
	}
	w := newControlConn(c)
	err = w.writeJSON(frameHello, greeting{Server: server, Key: os.Getenv(keyVariable), PID: os.Getpid(), Spawned: spawned})
	return c, w, err
}

// peerProcess is the process of a stdio server. It holds files and signals; the machine in the harness decides what happens
// with them.
type peerProcess struct {
	// address is that of the harness; a spawned child gets it, too.
	address, server string
	control         *controlConn

	// inputCond waits for the end of a pause; its lock guards inputPaused.
	inputCond   *sync.Cond
	inputPaused bool

	// out and err write to the pipes in goroutines of their own, so that orders are read while the client does not read.
	out, err *pipeWriter
}

// runPeer is the whole life of a peer's process. It ends when the harness orders it, or when the control connection ends, so
// that no process outlives a harness that was killed.
func runPeer(address, server string) int {
	signal.Ignore(syscall.SIGPIPE, syscall.SIGINT, syscall.SIGHUP)
	// Eight are more signals than a stop sends; the runtime drops further ones.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM)
	_, control, err := dialHarness(address, server, false)
	if err != nil {
		fmt.Fprintln(os.Stderr, Marker+": the harness cannot be reached:", err)
		return exitOrphaned
	}
	s := &peerProcess{
		address: address, server: server, control: control, inputCond: sync.NewCond(&sync.Mutex{}),
		out: newPipeWriter(os.Stdout), err: newPipeWriter(os.Stderr),
	}
	go s.readInput(os.Stdin)
	go func() {
		for range signals {
			// An error means that the harness has ended, which followOrders notices too.
			_ = control.writeFrame(frameTerminated, nil)
		}
	}()
	return s.followOrders()
}

// followOrders does what the harness orders until an exit order, and returns the exit code.
func (s *peerProcess) followOrders() int {
	for {
		kind, body, err := s.control.readFrame()
		if err != nil {
			return exitOrphaned
		}
		switch kind {
		case frameOutput:
			s.out.enqueueOutput(rawOutput{Bytes: body})
		case frameFlood:
			var f rawOutput
			if json.Unmarshal(body, &f) != nil {
				return exitOrphaned
			}
			if f.Stderr {
				s.err.enqueueOutput(f)
			} else {
				s.out.enqueueOutput(f)
			}
		case framePauseInput, frameResumeInput:
			s.inputCond.L.Lock()
			s.inputPaused = kind == framePauseInput
			s.inputCond.L.Unlock()
			s.inputCond.Broadcast()
		case frameSpawn:
			var o spawnedChild
			if json.Unmarshal(body, &o) == nil {
				s.spawnChild(o)
			}
		case frameExit:
			var e exitOrder
			// A body that cannot be read leaves code 0, and the process ends anyway.
			_ = json.Unmarshal(body, &e)
			s.out.flushAndStop()
			s.err.flushAndStop()
			if e.Signal != "" {
				dieBySignal(e.Signal)
			}
			return e.Code
		default:
		}
	}
}

// readInput passes each line of the client on, until the client closes the input. Lines have no limit here, because the
// manager is under test and not the harness.
func (s *peerProcess) readInput(in io.Reader) {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		s.inputCond.L.Lock()
		// A pause takes effect between two lines: a line whose reading has begun is passed on.
		for s.inputPaused {
			s.inputCond.Wait()
		}
		s.inputCond.L.Unlock()
		line, err := r.ReadBytes('\n')
		if n := len(line); n > 0 {
			_ = s.control.writeFrame(frameLine, line)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				fmt.Fprintln(os.Stderr, Marker+":", err)
			}
			_ = s.control.writeFrame(frameEOF, nil)
			return
		}
	}
}

// spawnChild starts a child that inherits standard output and error, and lives for a while even if this process ends.
func (s *peerProcess) spawnChild(o spawnedChild) {
	self, err := os.Executable()
	if err != nil {
		return
	}
	cmd := exec.Command(self, append(childArguments(becomeChild, s.address, s.server), o.For.String())...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	// Its own session takes the child out of the process group, where a signal of the client to the group does not reach it.
	if o.OwnSession {
		cmd.SysProcAttr = ownSession()
	}
	if cmd.Start() != nil {
		return
	}
	o.PID = cmd.Process.Pid
	_ = s.control.writeJSON(frameSpawned, o)
	// Wait keeps the child from being a zombie as long as this process lives.
	go func() { _ = cmd.Wait() }()
}

// runSpawnedChild is the process that a server has started: it does nothing until its time is over or the harness ends.
func runSpawnedChild(address, server string) int {
	signal.Ignore(syscall.SIGPIPE, syscall.SIGINT, syscall.SIGHUP)
	_, control, err := dialHarness(address, server, true)
	if err != nil {
		return exitOrphaned
	}
	if d, err := time.ParseDuration(os.Args[len(os.Args)-1]); err == nil {
		time.AfterFunc(d, func() { os.Exit(0) })
	}
	for {
		if _, _, err := control.readFrame(); err != nil {
			return 0
		}
	}
}
