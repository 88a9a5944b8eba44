package compare

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"sync"
)

// openFloor returns a client that writes the bytes of a request and reads those of its answer, without decoding either or
// looking at ids. The echo server answers over stdio in the order of the requests; with many callers the requests are written
// together, and each caller waits for one line.
func (w *ServerSet) openFloor(ctx context.Context, c Case) (*ConnectedClient, error) {
	request := func(id int) []byte {
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"echo","arguments":{"text":"%s"}}}`,
			id, paddingText(c.Size))
	}
	if command, args, ok := c.stdioCommand(); ok {
		return stdioFloor(exec.Command(command, args...), append(request(1), '\n'), c)
	}
	url := w.serverURL(c)
	if url == "" {
		return &ConnectedClient{Call: w.inProcessFloor(request(1)), Close: func() {}}, nil
	}
	client, body := w.httpClient(c), request(1)
	return &ConnectedClient{
		Call: func(ctx context.Context, _ int) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
			if err != nil {
				return err
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Accept", "application/json, text/event-stream")
			resp, err := client.Do(req)
			if err != nil {
				return err
			}
			defer resp.Body.Close()
			n, err := io.Copy(io.Discard, resp.Body)
			if err == nil && n < int64(c.Size) {
				err = fmt.Errorf("the server answered %d bytes", n)
			}
			return err
		},
		Close: client.CloseIdleConnections,
	}, nil
}

// stdioFloor starts the server of a stdio case and the goroutines of its pipeFloor, which end with the server.
func stdioFloor(cmd *exec.Cmd, line []byte, c Case) (*ConnectedClient, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	f := &pipeFloor{in: in, line: line, tokens: make(chan error, c.Callers)}
	f.more = sync.NewCond(&f.mu)
	go f.writeLoop()
	go f.readLoop(bufio.NewReaderSize(out, 256<<10))
	return &ConnectedClient{Call: f.callOnce, Close: func() {
		f.mu.Lock()
		f.closed = true
		f.more.Broadcast()
		f.mu.Unlock()
		_ = in.Close()
		_ = cmd.Wait()
	}}, nil
}

// pipeFloor writes the lines of all waiting callers together, and hands out one token for each line that comes back.
type pipeFloor struct {
	in     io.Writer
	line   []byte
	tokens chan error

	// mu guards waiting and closed; more wakes writeLoop.
	mu      sync.Mutex
	more    *sync.Cond
	waiting int
	closed  bool
}

// callOnce asks for one line to be written, and waits for a token.
func (f *pipeFloor) callOnce(ctx context.Context, _ int) error {
	f.mu.Lock()
	f.waiting++
	f.mu.Unlock()
	f.more.Signal()
	select {
	case err := <-f.tokens:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// writeLoop writes one line for each caller that has come since the last write.
func (f *pipeFloor) writeLoop() {
	var batch []byte
	for {
		f.mu.Lock()
		for f.waiting == 0 && !f.closed {
			f.more.Wait()
		}
		n := f.waiting
		f.waiting = 0
		closed := f.closed
		f.mu.Unlock()
		if closed {
			return
		}
		batch = batch[:0]
		for range n {
			batch = append(batch, f.line...)
		}
		if _, err := f.in.Write(batch); err != nil {
			return
		}
	}
}

// readLoop hands out a token for each line, also for lines longer than its buffer.
func (f *pipeFloor) readLoop(in *bufio.Reader) {
	for {
		_, err := in.ReadSlice('\n')
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = in.ReadSlice('\n')
		}
		if err != nil {
			return
		}
		f.tokens <- nil
	}
}
