package lines

import (
	"bytes"
	"fmt"
	"math"
	"runtime"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/transports/internal/incoming"
)

// splitterLog writes down what lines says, in order.
type splitterLog struct{ log []string }

func (h *splitterLog) lines(limit int64) *Splitter {
	return &Splitter{
		Limit: limit, EndlessSize: EndlessLine(limit),
		OnMessage: func(b []byte) { h.log = append(h.log, "message "+string(b)) },
		OnOversized: func(o *incoming.Oversized) {
			h.log = append(h.log, fmt.Sprintf("large %q %q %d", o.Head, o.Tail, o.Size))
		},
		OnNoise: func(b []byte) { h.log = append(h.log, "noise "+string(b)) },
	}
}

func TestLines(t *testing.T) {
	for name, c := range map[string]struct {
		in   string
		want []string
	}{
		"one":                    {"{1}\n", []string{"message {1}"}},
		"several in one piece":   {"{1}\n{2}\n[3]\n", []string{"message {1}", "message {2}", "message [3]"}},
		"nothing":                {"\n\r\n \t\n", nil},
		"carriage return":        {"{1}\r\n", []string{"message {1}"}},
		"white space around":     {" \t {1} \t\r\n", []string{"message {1}"}},
		"white space inside":     {"{ 1 }\n", []string{"message { 1 }"}},
		"byte order mark":        {"\xef\xbb\xbf{1}\n", []string{"message {1}"}},
		"part of the mark":       {"\xef\xbb{1}\n", []string{"noise \xef\xbb{1}"}},
		"a letter like the mark": {"\xef\xbc\x81 full width\n", []string{"noise ！ full width"}},
		"noise":                  {"hello\n{1}\nnull\n", []string{"noise hello", "message {1}", "noise null"}},
		"long noise":             {strings.Repeat("n", 300) + "\n", []string{"noise " + strings.Repeat("n", 256)}},
		"noise over the limit": {strings.Repeat("n", 99) + "\n{1}\n",
			[]string{"noise " + strings.Repeat("n", 99), "message {1}"}},
		"at the limit": {"{" + strings.Repeat("x", 19) + "\r\n", []string{"message {" + strings.Repeat("x", 19)}},
		"over the limit": {"{" + strings.Repeat("x", 20) + "\n{1}\n",
			[]string{`large "{xxxxxxxxxxxxxxxxxxxx" "{xxxxxxxxxxxxxxxxxxxx" 21`, "message {1}"}},
		"white space beyond the limit": {"{1}" + strings.Repeat(" ", 30) + "\n",
			[]string{fmt.Sprintf("large %q %q 33", "{1}"+strings.Repeat(" ", 30), "{1}"+strings.Repeat(" ", 30))}},
		"the end cuts a message off": {"{1}\n{\"cut", []string{"message {1}", `noise {"cut`}},
		"a last whole message":       {"{1}\n{\"a\":2}", []string{"message {1}", `message {"a":2}`}},
		"the end cuts noise off":     {"bye", []string{"noise bye"}},
		"the end cuts a large line": {"{" + strings.Repeat("x", 25),
			[]string{fmt.Sprintf("large %q %q 26", "{"+strings.Repeat("x", 25), "{"+strings.Repeat("x", 25))}},
	} {
		for _, size := range []int{1, 2, 3, 7, 1 << 20} {
			t.Run(fmt.Sprintf("%s by %d", name, size), func(t *testing.T) {
				var h splitterLog
				feedBy(h.lines(20), []byte(c.in), size)
				if fmt.Sprint(h.log) != fmt.Sprint(c.want) {
					t.Errorf("got  %q\nwant %q", h.log, c.want)
				}
			})
		}
	}
}

func feedBy(l *Splitter, in []byte, size int) {
	for len(in) > 0 {
		n := min(size, len(in))
		if !l.Feed(in[:n]) {
			return
		}
		in = in[n:]
	}
	l.EndStream()
}

func TestLinesKeepTheEndsOfALargeLine(t *testing.T) {
	var h splitterLog
	var head, tail []byte
	var size int64
	l := h.lines(1000)
	l.OnOversized = func(o *incoming.Oversized) { head, tail, size = o.Head, o.Tail, o.Size }
	line := []byte(`{"id":1,"pad":"` + strings.Repeat("0123456789", 5000) + `","last":2}`)
	feedBy(l, append(line, '\n'), 777)
	if size != int64(len(line)) || !bytes.Equal(head, line[:4096]) || !bytes.Equal(tail, line[len(line)-4096:]) {
		t.Errorf("size %d of %d, head %d bytes, tail %d bytes ending in %.20q", size, len(line), len(head), len(tail),
			tail[max(0, len(tail)-20):])
	}
}

func TestEndlessLineIsGivenUp(t *testing.T) {
	for _, first := range []string{"{", "noise", ""} {
		var h splitterLog
		l := h.lines(100)
		l.EndlessSize = 10_000
		l.Feed([]byte(first))
		fed := 0
		for l.Feed([]byte(" pad pad ")) {
			if fed += 9; fed > 20_000 {
				t.Fatalf("a line that begins with %q goes on after %d bytes", first, fed)
			}
		}
		if fed < 9_000 {
			t.Errorf("a line that begins with %q was given up after %d bytes", first, fed)
		}
	}
}

// What a message may have is never too long for a line, however much that is.
func TestEndlessLineFollowsTheLimit(t *testing.T) {
	for limit, want := range map[int64]int64{1 << 10: 128 << 20, 16 << 20: 2 << 30, 4 << 30: 512 << 30, 1 << 40: 128 << 40,
		math.MaxInt64: math.MaxInt64} {
		if got := EndlessLine(limit); got != want {
			t.Errorf("with messages of %d bytes a line is endless at %d, want %d", limit, got, want)
		}
	}
}

// A line without an end must not gather in memory: this one is a thousand times the limit.
func TestLongLinesNeedLittleMemory(t *testing.T) {
	const limit = 64 << 10
	for _, first := range []string{"{", "noise", " "} {
		var h splitterLog
		l := h.lines(limit)
		piece := bytes.Repeat([]byte("x"), limit)
		if first == " " {
			piece = bytes.Repeat([]byte(" "), limit)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		l.Feed([]byte(first))
		for range 1000 * limit / len(piece) {
			l.Feed(piece)
		}
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 16*limit {
			t.Errorf("a line of %d bytes that begins with %q took %d bytes of memory", 1000*limit, first, used)
		}
	}
}

// TestLinesOfSeveralBuffers: a line that is longer than a buffer is whole, costs twice its size at most when buffers are
// there, and its ends are known if it is over the limit or cut off.
func TestLinesOfSeveralBuffers(t *testing.T) {
	const limit = 5 * linePieceSize / 2
	for name, c := range map[string]struct {
		size int
		end  string
		want string
	}{
		"within":          {limit - 1, "\n", "message"},
		"at the limit":    {limit, " \n", "message"},
		"whole buffers":   {2 * linePieceSize, "\n", "message"},
		"over the limit":  {limit + 1, "\n", "large"},
		"a last message":  {2*linePieceSize + 5, "", "message"},
		"cut off":         {2*linePieceSize + 5, "x", "noise"},
		"three and noise": {linePieceSize + 1, "\nnoise\n{}\n", "message"},
	} {
		line := []byte(`{"a":"` + strings.Repeat("0123456789", c.size/10+1))
		line = append(line[:c.size-2], `"}`...)
		for _, pieceSize := range []int{99_991, linePieceSize, 10 * linePieceSize} {
			var got []string
			var body []byte
			var size int64
			l := &Splitter{
				Limit: limit, EndlessSize: EndlessLine(limit),
				OnMessage: func(b []byte) { got, body = append(got, "message"), append(body, b...) },
				OnOversized: func(o *incoming.Oversized) {
					if !bytes.Equal(o.Head, line[:incoming.KeptEndSize]) || !bytes.Equal(o.Tail, line[len(line)-incoming.KeptEndSize:]) {
						t.Errorf("%s by %d: wrong ends", name, pieceSize)
					}
					got, size = append(got, "large"), o.Size
				},
				OnNoise: func([]byte) { got = append(got, "noise") },
			}
			feedBy(l, append(line[:len(line):len(line)], c.end...), pieceSize)
			if len(got) == 0 || got[0] != c.want || c.want == "large" && size != int64(len(line)) {
				t.Errorf("%s by %d: %v, %d bytes of %d", name, pieceSize, got, size, len(line))
			}
			if c.want == "message" && !bytes.HasPrefix(body, line) {
				t.Errorf("%s by %d: %d bytes that differ from the line's %d", name, pieceSize, len(body), len(line))
			}
			if l.lastPiece != nil || l.fullPieces != nil {
				t.Errorf("%s by %d: something is held", name, pieceSize)
			}
		}
	}
}

func TestOneAllocationPerMessage(t *testing.T) {
	var h splitterLog
	l := h.lines(1 << 20)
	l.OnMessage = func([]byte) {}
	small := []byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hello"}]}}` + "\n")
	if n := testing.AllocsPerRun(1000, func() { l.Feed(small) }); n > 1 {
		t.Errorf("%v allocations for a message", n)
	}
	if n := testing.AllocsPerRun(1000, func() { l.Feed(small[:20]); l.Feed(small[20:]) }); n > 2 {
		t.Errorf("%v allocations for a message in two pieces", n)
	}
}

// FuzzLines cuts the same bytes in two ways, one of which is the obvious one, and compares.
func FuzzLines(f *testing.F) {
	for _, s := range []string{"{1}\n", "a\n{\"x\":2}\r\n\n [1]\n", "\xef\xbb\xbf{}\n", "\xef{\n",
		"{" + strings.Repeat("y", 80) + "\n{"} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, in []byte, size uint8) {
		const limit = 40
		var whole, cut splitterLog
		feedBy(whole.lines(limit), in, len(in)+1)
		feedBy(cut.lines(limit), in, int(size)+1)
		if fmt.Sprint(whole.log) != fmt.Sprint(cut.log) {
			t.Fatalf("in one piece: %q\nby %d:        %q", whole.log, int(size)+1, cut.log)
		}
		for i, line := range bytes.SplitAfter(in, []byte("\n")) {
			body := bytes.Trim(line, " \t\r\n")
			if bytes.HasSuffix(line, []byte("\n")) && len(body) > 0 && len(body) <= limit && incoming.IsMessageStart(body[0]) &&
				len(bytes.TrimLeft(line, " \t\r")) <= limit+2 {
				found := false
				for _, w := range whole.log {
					found = found || w == "message "+string(body)
				}
				if !found {
					t.Fatalf("line %d is missing: %q", i, body)
				}
			}
		}
	})
}

// What another connection left in a shared buffer is no part of a line.
func TestLinesBeginEmpty(t *testing.T) {
	for range 10 {
		left := []byte(`{"secret":"of another connection"}`)
		lineBuffers.Put(&left)
		var h splitterLog
		l := h.lines(1 << 20)
		l.Feed([]byte(`{"id"`))
		l.Feed([]byte(`:1}` + "\n"))
		if got := fmt.Sprint(h.log); got != `[message {"id":1}]` {
			t.Fatal(got)
		}
	}
}
