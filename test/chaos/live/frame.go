package live

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// frameKind is what one message between a child and the harness is about. The letter is the first byte of it; the length of
// the rest follows in four bytes, and then the rest.
type frameKind byte

const (
	// From the child.
	frameHello      frameKind = 'h' // greeting: who is calling
	frameLine       frameKind = 'l' // a line that the manager has written
	frameEOF        frameKind = 'e' // the manager has closed the child's input
	frameTerminated frameKind = 's' // the child was sent SIGTERM
	frameSpawned    frameKind = 'p' // offspring: a child of the child runs

	// To the child.
	frameOutput      frameKind = 'o' // bytes for standard output
	frameFlood       frameKind = 'f' // flood
	frameExit        frameKind = 'x' // exit
	framePauseInput  frameKind = 'd' // stop reading
	frameResumeInput frameKind = 'u' // go on reading
	frameSpawn       frameKind = 'c' // offspring: start one
)

// greeting is the first frame of a child. Key is what only the harness and its children know.
type greeting struct {
	Server string
	Key    string
	PID    int
	// Spawned says that it is no server, but what a server has started.
	Spawned bool
}

// rawOutput is bytes that are no message, or many of them. It is one frame, however much comes of it.
type rawOutput struct {
	Bytes  []byte
	Repeat int
	Chunk  int
	Every  time.Duration
	Stderr bool
}

// exitOrder ends a child: with a code, or by a signal that it sends itself.
type exitOrder struct {
	Code   int
	Signal string
}

// spawnedChild is a child of a child.
type spawnedChild struct {
	For        time.Duration
	OwnSession bool
	PID        int
}

// maxFrame bounds one frame. A line of the manager's may be as long as a call's arguments are.
const maxFrame = 256 << 20

// controlConn is one end of a control connection. Writing is safe for concurrent use; one goroutine reads.
type controlConn struct {
	in  *bufio.Reader
	mu  sync.Mutex
	out io.Writer
}

func newControlConn(c io.ReadWriter) *controlConn {
	return &controlConn{in: bufio.NewReader(c), out: c}
}

func (w *controlConn) writeFrame(kind frameKind, body []byte) error {
	b := make([]byte, 5, 5+len(body))
	b[0] = byte(kind)
	binary.BigEndian.PutUint32(b[1:], uint32(len(body))) //nolint:gosec // nobody sends 4 GiB
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.out.Write(append(b, body...))
	return err
}

func (w *controlConn) writeJSON(kind frameKind, body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return w.writeFrame(kind, b)
}

func (w *controlConn) readFrame() (frameKind, []byte, error) {
	var head [5]byte
	if _, err := io.ReadFull(w.in, head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxFrame {
		return 0, nil, fmt.Errorf("a frame of %d bytes is longer than %d", n, maxFrame)
	}
	body := make([]byte, n)
	_, err := io.ReadFull(w.in, body)
	return frameKind(head[0]), body, err
}
