package performer

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"time"
)

// frameKind is the type of one frame between a child and the harness. A frame is this byte, the length of the body in four
// bytes (big endian), and the body.
type frameKind byte

const (
	// From the child.
	frameHello      frameKind = 'h' // greeting: who is calling
	frameLine       frameKind = 'l' // a line that the client has written
	frameEOF        frameKind = 'e' // the client has closed the child's input
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

// greeting is the first frame of a child. Key proves that the harness has started it.
type greeting struct {
	Server string
	Key    string
	PID    int
	// Spawned is set by a process that a server has started, which serves nothing itself.
	Spawned bool
}

// rawOutput is bytes to write, once or many times. It stays one frame even if megabytes come of it, so that a flood does not
// fill the control connection.
// Chunk bytes are written each Every; a Chunk of 0 writes all at once.
type rawOutput struct {
	Bytes  []byte
	Repeat int
	Chunk  int
	Every  time.Duration
	Stderr bool
}

// exitOrder ends a child: with a code, or by a signal that it sends to itself.
type exitOrder struct {
	Code   int
	Signal string
}

// spawnedChild orders a child of a child, and reports its PID once it runs.
type spawnedChild struct {
	// PID is 0 in the order, and set in the report.
	For        time.Duration
	OwnSession bool
	PID        int
}

// maxFrame bounds one frame in bytes. A line of the client may be as long as the arguments of a call, which have megabytes at
// most.
const maxFrame = 256 << 20

// controlConn is one end of a control connection. Any goroutine may write, one goroutine reads.
type controlConn struct {
	// mu serialises the writers, so that frames do not mix.
	in  *bufio.Reader
	mu  sync.Mutex
	out io.Writer
}

func newControlConn(c io.ReadWriter) *controlConn {
	return &controlConn{in: bufio.NewReader(c), out: c}
}

// writeFrame writes one frame: kind, length as four bytes, body. It blocks while the other side does not read.
func (w *controlConn) writeFrame(kind frameKind, body []byte) error {
	b := make([]byte, 5, 5+len(body))
	b[0] = byte(kind)
	binary.BigEndian.PutUint32(b[1:], uint32(len(body))) //nolint:gosec // no frame has 4 GiB
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.out.Write(append(b, body...))
	return err
}

// writeJSON writes a frame whose body is the JSON of a value.
func (w *controlConn) writeJSON(kind frameKind, body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	return w.writeFrame(kind, b)
}

// readFrame reads one frame. After an error, which may also be a frame that is too long, the place of the next frame is
// unknown: the caller ends the connection.
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
