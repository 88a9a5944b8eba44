package incoming

import "io"

// ReadBody reads one message of the announced length, or of an unknown one if length is negative. oversized is set in place of
// msg if the message is over the limit, or if the server's share of the memory has no room for it.
func ReadBody(body io.Reader, length, limit int64, h Reservation) (msg []byte, oversized *Oversized, err error) {
	g := Buffer{Reservation: h}
	defer g.ReleaseBuffer()
	if length >= 0 {
		// The buffer has one byte more than announced, so that the end of the body is seen without growing.
		size := min(length, limit) + 1
		if size > pooledBufferSize && !g.Reservation.ReserveMore(size) {
			return measureRest(nil, body, limit, true)
		}
		g.Bytes = make([]byte, 0, size)
	} else {
		// A body without a length is most often short: its first piece comes without a large buffer.
		err = g.readFirstPiece(body)
	}
	for err == nil && int64(len(g.Bytes)) <= limit {
		if len(g.Bytes) == cap(g.Bytes) {
			if !g.reserveBytes(len(g.Bytes)+1, int(limit)+1) {
				return measureRest(g.Bytes, body, limit, true)
			}
		}
		var n int
		n, err = body.Read(g.Bytes[len(g.Bytes):cap(g.Bytes)])
		g.Bytes = g.Bytes[:len(g.Bytes)+n]
	}
	switch {
	case int64(len(g.Bytes)) > limit:
		return measureRest(g.Bytes, body, limit, false)
	// Only the bare io.EOF is the end of the body.
	case err != io.EOF: //nolint:errorlint // one that wraps it may be a connection that broke
		return nil, nil, err
	}
	return g.TakeMessage(), nil, nil
}

// measureRest reads the rest of a body that is not kept and keeps its ends. It stops at SkipBound; the caller gives up the
// exchange then, and its connection with it.
func measureRest(seen []byte, body io.Reader, limit int64, overBudget bool) ([]byte, *Oversized, error) {
	big := &Oversized{OverBudget: overBudget}
	big.AddBytes(seen)
	buf := make([]byte, 32<<10)
	for big.Size < SkipBound(limit) {
		n, err := body.Read(buf)
		big.AddBytes(buf[:n])
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return nil, big, nil
}
