package daemon

import (
	"bufio"
	"io"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/daemon/client"
)

// A bridge sends nothing more after its word, so that nothing of what follows is read, however often it is tried. In the middle of a line, and as
// a part of another one, the word is none.
func TestNothingIsReadBehindTheWordOfABridge(t *testing.T) {
	long := `{"x":"` + strings.Repeat("y", 10_000) + `"}`
	for sent, want := range map[string]string{
		"":            "",
		"{\"a\":1}\n": "{\"a\":1}\n",
		"{\"a\":1}\n" + client.DrainedLine + "\n":              "{\"a\":1}\n",
		client.DrainedLine + "\n{\"a\":1}\n":                   "",
		client.DrainedLine + "\n" + client.DrainedLine + "\nx": "",
		long + "\n" + client.DrainedLine + "\n{}\n":            long + "\n",
		long + client.DrainedLine + "\n{}\n":                   long + client.DrainedLine + "\n{}\n",
		`{"mcpvisor":"other"}` + "\n{}\n":                      `{"mcpvisor":"other"}` + "\n{}\n",
		"no end":                                               "no end",
	} {
		d := &drainReader{r: bufio.NewReaderSize(strings.NewReader(sent), 64)}
		got, err := io.ReadAll(d)
		if string(got) != want || err != nil {
			t.Errorf("%.60q: %.60q, %v", sent, got, err)
		}
		if n, err := d.Read(make([]byte, 10)); n != 0 || err != io.EOF {
			t.Errorf("%.60q: after the end come %d bytes, %v", sent, n, err)
		}
	}
}
