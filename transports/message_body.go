package transports

import (
	"io"
)

// readBody reads one message of the announced length, or of an unknown one if length is negative. oversized is set in place of
// msg if the message is over the limit, or if the server's share of the memory has no room for it.
func readBody(body io.Reader, length, limit int64, h memoryReservation) (msg []byte, oversized *oversizedMessage, err error) {
	g := messageBuffer{reservation: h}
	defer g.releaseBuffer()
	if length >= 0 {
		// The buffer has one byte more than announced, so that the end of the body is seen without growing.
		size := min(length, limit) + 1
		if size > pooledBufferSize && !g.reservation.reserveMore(size) {
			return measureRest(nil, body, limit, true)
		}
		g.b = make([]byte, 0, size)
	} else {
		// A body without a length is most often short: its first piece comes without a large buffer.
		err = g.readFirstPiece(body)
	}
	for err == nil && int64(len(g.b)) <= limit {
		if len(g.b) == cap(g.b) {
			if !g.reserveBytes(len(g.b)+1, int(limit)+1) {
				return measureRest(g.b, body, limit, true)
			}
		}
		var n int
		n, err = body.Read(g.b[len(g.b):cap(g.b)])
		g.b = g.b[:len(g.b)+n]
	}
	switch {
	case int64(len(g.b)) > limit:
		return measureRest(g.b, body, limit, false)
	// Only the bare io.EOF is the end of the body.
	case err != io.EOF: //nolint:errorlint // one that wraps it may be a connection that broke
		return nil, nil, err
	}
	return g.takeMessage(), nil, nil
}

// measureRest reads the rest of a body that is not kept and keeps its ends. It stops at skipBound; the caller gives up the
// exchange then, and its connection with it.
func measureRest(seen []byte, body io.Reader, limit int64, overBudget bool) ([]byte, *oversizedMessage, error) {
	big := &oversizedMessage{overBudget: overBudget}
	big.addBytes(seen)
	buf := make([]byte, 32<<10)
	for big.size < skipBound(limit) {
		n, err := body.Read(buf)
		big.addBytes(buf[:n])
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return nil, big, nil
}
