//go:build unix

package proxy_test

import (
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/test/chaos/proxy"
)

// pieceReader gives a stream in pieces of odd sizes.
type pieceReader struct {
	b   []byte
	rng *rand.Rand
}

func (p *pieceReader) Read(into []byte) (int, error) {
	if len(p.b) == 0 {
		return 0, io.EOF
	}
	n := copy(into, p.b[:min(1+p.rng.IntN(3000), len(p.b))])
	p.b = p.b[n:]
	return n, nil
}

func sameBytes(t *testing.T, want []byte, seed uint64, rules ...string) {
	t.Helper()
	got, exit := runProxy(t, newStdioProxy(t, "cat", rules...), &pieceReader{want, rand.New(rand.NewPCG(seed, 2))})
	if sha256.Sum256([]byte(got)) != sha256.Sum256(want) {
		t.Errorf("%d bytes went in, %d other ones came back (rules %q)", len(want), len(got), rules)
	}
	if exit != (proxy.Exit{}) {
		t.Errorf("the end was %+v", exit)
	}
}

// TestTheVeryBytes sends odd and random bytes through both directions, without rules and with one that hits nothing.
func TestTheVeryBytes(t *testing.T) {
	big := []byte(`{"jsonrpc":"2.0","id":7,"result":"` + strings.Repeat("x", 5<<20) + "\"}\nand more\n")
	for _, rules := range [][]string{nil, {unmatchedRule}} {
		sameBytes(t, []byte(oddLines), 1, rules...)
		sameBytes(t, nil, 1, rules...)
		sameBytes(t, big, 1, rules...)
		for seed := range uint64(10) {
			rng := rand.New(rand.NewPCG(seed, 1))
			b := make([]byte, rng.IntN(1<<18))
			for i := range b {
				b[i] = byte(rng.Uint32())
				if rng.IntN(40) == 0 {
					b[i] = '\n'
				}
			}
			sameBytes(t, b, seed, rules...)
		}
	}
}

// FuzzTheVeryBytes: whatever goes in comes back, in pieces of any size.
func FuzzTheVeryBytes(f *testing.F) {
	f.Add([]byte(oddLines), uint64(1))
	f.Add([]byte(askList+askEcho), uint64(2))
	f.Add([]byte("\n\n\r"), uint64(3))
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		sameBytes(t, b, seed)
		sameBytes(t, b, seed, unmatchedRule)
	})
}
