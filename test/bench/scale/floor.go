package scale

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/test/servers"
)

// The lines that the floor client writes to each server.
const (
	floorInitialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},` +
		`"clientInfo":{"name":"floor","version":"0"}}}` + "\n"
	floorRest = `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" +
		`{"jsonrpc":"2.0","id":2,"method":"tools/list"}` + "\n"
)

// MeasureFloor returns the time in which n stdio servers can be started and asked for their tools by a client that does nothing
// else: it supervises nothing, probes for no era, decodes nothing and reads no standard error. It starts slots servers at once;
// a slot is free again when the handshake was answered, as with the manager's gate.
func MeasureFloor(ctx context.Context, n, slots int) (took time.Duration, err error) {
	gate := make(chan struct{}, slots)
	children := make([]*floorChild, n)
	errs := make(chan error, n)
	began := time.Now()
	var wg sync.WaitGroup
	for i := range children {
		wg.Go(func() {
			gate <- struct{}{}
			// The slot is given back once: after the handshake, or when it failed.
			freed := sync.OnceFunc(func() { <-gate })
			defer freed()
			c, err := startFloorChild(ctx)
			if err == nil {
				children[i] = c
				err = c.shakeHands(freed)
			}
			if err != nil {
				errs <- err
			}
		})
	}
	wg.Wait()
	took = time.Since(began)
	for _, c := range children {
		if c != nil {
			_ = c.in.Close()
		}
	}
	for _, c := range children {
		if c != nil {
			// The exit status has no meaning here.
			_ = c.cmd.Wait()
		}
	}
	select {
	case err := <-errs:
		return 0, err
	default:
		return took, nil
	}
}

// floorChild is one server of the floor client.
type floorChild struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startFloorChild starts the cheapest test server.
func startFloorChild(ctx context.Context) (*floorChild, error) {
	command, args := servers.Command("cheap")
	c := &floorChild{cmd: exec.CommandContext(ctx, command, args...)}
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.in, c.out = in, bufio.NewReader(out)
	return c, c.cmd.Start()
}

// shakeHands performs the handshake, calls answered, and asks for the tools.
func (c *floorChild) shakeHands(answered func()) error {
	if _, err := io.WriteString(c.in, floorInitialize); err != nil {
		return err
	}
	if err := c.expectWord("protocolVersion"); err != nil {
		return err
	}
	answered()
	if _, err := io.WriteString(c.in, floorRest); err != nil {
		return err
	}
	return c.expectWord("tools")
}

// expectWord reads a line and checks that it holds the word, instead of decoding it.
func (c *floorChild) expectWord(word string) error {
	line, err := c.out.ReadBytes('\n')
	if err != nil {
		return err
	}
	if !bytes.Contains(line, []byte(word)) {
		return fmt.Errorf("the server answered %.80q", line)
	}
	return nil
}
