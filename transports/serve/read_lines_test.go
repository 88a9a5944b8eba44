package serve_test

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/transports/serve"
)

// TestReadLines: lines come whole, also those that are longer than the buffer of the reader; one that is longer than the bound comes as nothing,
// once, and the lines behind it are read. Empty lines and the rest without an end do not come.
func TestReadLines(t *testing.T) {
	long, tooLong := strings.Repeat("l", 150<<10), strings.Repeat("t", 250<<10)
	lines := make(chan []byte, 10)
	err := serve.ReadLines(t.Context(), strings.NewReader("one\n\n"+long+"\n  two \r\n"+tooLong+"\nthree\nrest"), 200<<10, lines)
	if err != nil {
		t.Error(err)
	}
	close(lines)
	var got []string
	for line := range lines {
		got = append(got, string(line))
	}
	if want := []string{"one", long, "two", "", "three"}; !slices.Equal(got, want) {
		var lengths []int
		for _, line := range got {
			lengths = append(lengths, len(line))
		}
		t.Errorf("there are lines of the lengths %d", lengths)
	}

	broken := errors.New("the pipe is broken")
	if err := serve.ReadLines(t.Context(), io.MultiReader(strings.NewReader("x\n"), brokenReader{broken}), 100, make(chan []byte, 1)); !errors.Is(err, broken) {
		t.Errorf("a reader that fails: %v", err)
	}
}

// A brokenReader fails.
type brokenReader struct{ err error }

func (r brokenReader) Read([]byte) (int, error) { return 0, r.err }
