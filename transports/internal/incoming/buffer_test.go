package incoming

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"
)

// TestGrowing: whatever the size and the pieces, a message comes as it was, in an array that is hardly larger than it and
// that no later message writes to.
func TestGrowing(t *testing.T) {
	const limit = 1 << 20
	var before, kept []byte
	for _, size := range []int{0, 1, 511, 4095, 4096, 4097, 60_000, 128<<10 - 1, 128 << 10, 128<<10 + 1, 300_000, limit} {
		sent := bytes.Repeat([]byte{byte('a' + size%23)}, size)
		for name, src := range map[string]io.Reader{
			"at once": bytes.NewReader(sent), "byte by byte": iotest.OneByteReader(bytes.NewReader(sent)),
			"with its end": iotest.DataErrReader(bytes.NewReader(sent)),
		} {
			got, big, err := ReadBody(src, -1, limit, Reservation{})
			if err != nil || big != nil || !bytes.Equal(got, sent) {
				t.Fatalf("%d bytes %s: %d bytes, %v", size, name, len(got), err)
			}
			if size < 128<<10 && cap(got) > size+size/4+64 {
				t.Errorf("%d bytes %s occupy %d", size, name, cap(got))
			}
			if !bytes.Equal(before, kept) {
				t.Fatalf("%d bytes %s were written over another message", size, name)
			}
			before, kept = got, sent
		}
	}
	if _, big, err := ReadBody(bytes.NewReader(make([]byte, limit+1)), -1, limit, Reservation{}); err != nil || big == nil || big.Size != limit+1 {
		t.Errorf("a message over the limit: %+v, %v", big, err)
	}
	if msg, _, err := ReadBody(iotest.TimeoutReader(bytes.NewReader(make([]byte, 9000))), -1, limit, Reservation{}); err == nil || msg != nil {
		t.Errorf("a message that breaks off: %d bytes, %v", len(msg), err)
	}
}
