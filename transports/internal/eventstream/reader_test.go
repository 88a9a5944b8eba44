package eventstream

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/mcpvisor/mcpvisor/transports/internal/incoming"
)

// parsedStream is everything that can be known of a stream.
type parsedStream struct {
	Events []seenEvent
	ID     string
	Retry  time.Duration
}

type seenEvent struct {
	Name, Data string
	Big        int64
}

func readAllEvents(t testing.TB, src io.Reader, limit int64) parsedStream {
	t.Helper()
	r := NewReader(src, limit, incoming.Reservation{})
	defer r.ReleaseBuffers()
	var s parsedStream
	for {
		e, err := r.NextEvent()
		if err != nil {
			if err != io.EOF {
				t.Fatalf("the stream ends with %v", err)
			}
			s.ID, s.Retry = r.ID, r.Retry
			return s
		}
		got := seenEvent{Name: e.Name, Data: string(e.Data)}
		if e.Oversized != nil {
			got.Big = e.Oversized.Size
		}
		s.Events = append(s.Events, got)
	}
}

// plainEvents is the format as the HTML standard words it, on a whole stream at once and without a thought for memory.
func plainEvents(text string, limit int64) parsedStream {
	var s parsedStream
	text = strings.TrimPrefix(text, "\xef\xbb\xbf")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	lines := strings.Split(text, "\n")
	name, data, id := "", []string(nil), ""
	for _, line := range lines[:len(lines)-1] { // what follows the last line end is no line
		if line == "" {
			s.ID = id
			if data != nil {
				e := seenEvent{Name: name, Data: strings.Join(data, "\n")}
				if int64(len(e.Data)) > limit {
					e.Big, e.Data = int64(len(e.Data)), ""
				}
				s.Events = append(s.Events, e)
			}
			name, data = "", nil
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "data":
			data = append(data, value)
		case "event":
			name = value
		case "id":
			if !strings.Contains(value, "\x00") {
				id = value
			}
		case "retry":
			if ms, err := strconv.ParseUint(value, 10, 63); err == nil {
				s.Retry = maxRetry
				if ms < uint64(maxRetry.Milliseconds()) {
					s.Retry = time.Duration(ms) * time.Millisecond
				}
			}
		}
	}
	return s
}

// chunkedReader gives a stream in pieces of random sizes.
type chunkedReader struct {
	rest string
	rnd  *rand.Rand
	most int // of one piece
}

func (p *chunkedReader) Read(b []byte) (int, error) {
	if p.rest == "" {
		return 0, io.EOF
	}
	n := copy(b, p.rest[:1+p.rnd.IntN(min(len(p.rest), p.most))])
	p.rest = p.rest[n:]
	return n, nil
}

var streams = []string{
	"",
	"data: {}\n\n",
	"data:{}\n\ndata:  two spaces\n\n",
	"data: a\ndata: b\ndata:\ndata\n\n",
	"event: message\ndata: x\nid: 7\nretry: 1500\n\n",
	": comment\n:\n\nid\n\ndata: after an empty id\n\n",
	"id: 1\n\nid: 2\ndata: cut off",
	"id: 1\ndata: \n\n",
	"data: crlf\r\n\r\ndata: cr\r\rdata: mixed\r\n\n",
	"\xef\xbb\xbfdata: bom\n\n",
	"\xef\xbb\xbf\xef\xbb\xbfdata: two\n\n",
	"\xef\xbb\xbf:\n\xef\xbb\xbfdata: late\n\n",
	"retry: 10x\nretry: -1\nretry: 99999999999999999999\nretry: 0\nretry:\n\n",
	"retry: 999999999999\n\n",
	"id: a\x00b\nid: c\n\n",
	"dat: x\ndatax: y\nDATA: z\n\n",
	"event: other\n\ndata: name was forgotten\n\n",
	"data: " + strings.Repeat("x", 300) + "\n\ndata: small\n\n",
	"data: " + strings.Repeat("y", 60) + "\ndata: " + strings.Repeat("z", 60) + "\n\n",
}

func TestEventStream(t *testing.T) {
	const limit = 100
	for _, s := range streams {
		want := plainEvents(s, limit)
		for name, src := range map[string]io.Reader{
			"whole": strings.NewReader(s), "bytes": iotest.OneByteReader(strings.NewReader(s)),
			"with the end": iotest.DataErrReader(strings.NewReader(s)),
			"pieces":       &chunkedReader{s, rand.New(rand.NewPCG(1, 2)), 9},
		} {
			if got := readAllEvents(t, src, limit); !reflect.DeepEqual(got, want) {
				t.Errorf("%.60q, %s:\n got %+v\nwant %+v", s, name, got, want)
			}
		}
	}
}

func FuzzEventStream(f *testing.F) {
	for _, s := range streams {
		f.Add(s, int64(20), uint64(1))
	}
	f.Fuzz(func(t *testing.T, s string, limit int64, seed uint64) {
		if limit = limit % 4096; limit <= 0 {
			limit = 1 - limit
		}
		for _, line := range strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }) {
			if len(line) > maxFieldLine && !strings.HasPrefix(line, "data:") {
				return // a field of this length is ignored, which the plain reader does not know
			}
		}
		want := plainEvents(s, limit)
		if got := readAllEvents(t, strings.NewReader(s), limit); !reflect.DeepEqual(got, want) {
			t.Errorf("whole:\n got %+v\nwant %+v", got, want)
		}
		if got := readAllEvents(t, &chunkedReader{s, rand.New(rand.NewPCG(seed, 0)), 9}, limit); !reflect.DeepEqual(got, want) {
			t.Errorf("in pieces:\n got %+v\nwant %+v", got, want)
		}
	})
}

func TestLongFieldsAreIgnored(t *testing.T) {
	long := strings.Repeat("l", maxFieldLine+1)
	s := "id: 1\n\nid: " + long + "\nevent: " + long + "\n" + long + ": x\n:" + long + long + "\ndata: d\n\n"
	got := readAllEvents(t, strings.NewReader(s), 100)
	if len(got.Events) != 1 || got.Events[0] != (seenEvent{Data: "d"}) || got.ID != "1" {
		t.Errorf("got %+v", got)
	}
}

// endlessReader is a stream of one byte for ever.
type endlessReader byte

func (e endlessReader) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(e)
	}
	return len(p), nil
}

func TestEndlessEventIsGivenUp(t *testing.T) {
	r := NewReader(io.MultiReader(strings.NewReader("data:"), endlessReader('x')), 1000, incoming.Reservation{})
	defer r.ReleaseBuffers()
	var e Event
	var err error
	if n := testing.AllocsPerRun(1, func() { e, err = r.NextEvent() }); n > 100 {
		t.Errorf("%v allocations for an event that is dropped", n)
	}
	if !errors.Is(err, ErrEndless) {
		t.Errorf("got %+v, %v", e, err)
	}
}

func TestExhausted(t *testing.T) {
	for _, c := range []struct {
		rest string
		want bool
	}{{"", true}, {"\n", false}, {": more", false}} {
		r := NewReader(iotest.DataErrReader(strings.NewReader("data: x\n\n"+c.rest)), 100, incoming.Reservation{})
		if _, err := r.NextEvent(); err != nil {
			t.Fatal(err)
		}
		if got := r.IsExhausted(); got != c.want {
			t.Errorf("with %q left: exhausted %v", c.rest, got)
		}
		r.ReleaseBuffers()
	}
}

func TestOversizeKeepsTheEnds(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		var all []byte
		var o incoming.Oversized
		for range rnd.IntN(20) {
			p := make([]byte, rnd.IntN(3*incoming.KeptEndSize))
			for i := range p {
				p[i] = byte(rnd.IntN(256))
			}
			all = append(all, p...)
			o.AddBytes(p)
		}
		head, tail := all[:min(len(all), incoming.KeptEndSize)], all[max(0, len(all)-incoming.KeptEndSize):]
		if !bytes.Equal(o.Head, head) || !bytes.Equal(o.Tail, tail) || o.Size != int64(len(all)) {
			t.Fatalf("of %d bytes: head %d, tail %d, size %d", len(all), len(o.Head), len(o.Tail), o.Size)
		}
	}
}

func BenchmarkEventStream(b *testing.B) {
	for _, size := range []int{100, 64 << 10} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			stream := "event: message\ndata: " + strings.Repeat("x", size) + "\n\n"
			b.SetBytes(int64(len(stream)))
			b.ReportAllocs()
			for b.Loop() {
				r := NewReader(strings.NewReader(stream), 1<<20, incoming.Reservation{})
				if e, err := r.NextEvent(); err != nil || len(e.Data) != size {
					b.Fatal(err)
				}
				r.ReleaseBuffers()
			}
		})
	}
}

// TestLargeEvents: the reader takes a wider buffer within a large message and gives it back.
func TestLargeEvents(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	var text strings.Builder
	for range 10 {
		for _, size := range []int{1, 200_000, 17_000, 4096, 70_000} {
			line := strings.Repeat(string(rune('a'+rnd.IntN(26))), size+rnd.IntN(5000))
			fmt.Fprintf(&text, "id: %d\ndata: %s\ndata: %s\n\n", size, line, line[:len(line)/2])
		}
	}
	want := plainEvents(text.String(), 250_000)
	for range 5 {
		src := &chunkedReader{text.String(), rnd, 20_000}
		if got := readAllEvents(t, src, 250_000); !reflect.DeepEqual(got, want) {
			t.Fatal("events read in pieces differ")
		}
		if got := readAllEvents(t, strings.NewReader(text.String()), 250_000); !reflect.DeepEqual(got, want) {
			t.Fatal("events read at once differ")
		}
	}
}
