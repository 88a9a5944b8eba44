package servers

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// Child is a process of this same program that serves over a network, so that what its servers cost is not counted as a client's.
type Child struct {
	// Line is what it has said first: where its servers are.
	Line string

	process *exec.Cmd
	input   io.Closer
}

// StartChild starts this program with arguments for which its main calls ServeChild, and waits for its first line.
func StartChild(args ...string) (*Child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &Child{process: exec.Command(self, args...)}
	c.process.Stderr = os.Stderr
	in, err := c.process.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.input = in
	if err := c.process.Start(); err != nil {
		return nil, err
	}
	line := bufio.NewScanner(out)
	if !line.Scan() {
		c.Close()
		return nil, fmt.Errorf("the servers did not say where they are: %w", line.Err())
	}
	c.Line = line.Text()
	return c, nil
}

// Close ends the process, and waits for it.
func (c *Child) Close() {
	_ = c.input.Close()
	// The exit status has no meaning here.
	_ = c.process.Wait()
}

// ServeChild is the other side of StartChild: it says where the servers are, and ends the process with the one that started it.
func ServeChild(line string) {
	if _, err := fmt.Println(line); err == nil {
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	os.Exit(0)
}
