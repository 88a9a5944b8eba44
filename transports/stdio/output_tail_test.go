package stdio

import (
	"bytes"
	"strings"
	"testing"
	"testing/quick"

	"github.com/mcpvisor/mcpvisor/transports/internal/incoming"
	"github.com/mcpvisor/mcpvisor/transports/internal/lines"
	"github.com/mcpvisor/mcpvisor/transports/internal/redact"
)

func TestTailKeepsTheEnd(t *testing.T) {
	// Without newlines, so that the dumb version is one line.
	same := func(pieces [][]byte, size uint8) bool {
		tl := outputTail{size: int(size) + 1}
		var all []byte
		for _, p := range pieces {
			p = bytes.ReplaceAll(p, []byte("\n"), []byte("-"))
			tl.write(p)
			all = append(all, p...)
		}
		return tl.redactedText(&redact.Redactor{}) == string(all[max(0, len(all)-tl.size):])
	}
	if err := quick.Check(same, nil); err != nil {
		t.Error(err)
	}
}

func TestTailBeginsWithAWholeLine(t *testing.T) {
	tl := outputTail{size: 20}
	for range 10 {
		tl.write([]byte("line one\nline two\n"))
	}
	if got := tl.redactedText(&redact.Redactor{}); got != "line two\n" && got != "line one\nline two\n" {
		t.Errorf("%q", got)
	}
	tl = outputTail{size: 20}
	tl.write([]byte("short\n"))
	if got := tl.redactedText(&redact.Redactor{}); got != "short\n" {
		t.Errorf("%q", got)
	}
}

// A secret that a bound would cut is hidden whole, at every place where the cut can be.
func TestSecretsAcrossACutAreHidden(t *testing.T) {
	const secret = "S3CRET-abcdefghi/jklm nop"
	hide := redact.NewForChild([]string{secret}, nil)
	for _, written := range []string{secret, "S3CRET-abcdefghi%2Fjklm+nop", `S3CRET-abcdefghi\/jklm nop`} {
		for at := range incoming.NoiseSize + 10 {
			line := strings.Repeat("x", at) + written + strings.Repeat("y", incoming.NoiseSize)
			var noise []string
			l := lines.Splitter{Limit: 1 << 20, EndlessSize: 1 << 30, Overlap: hide.CutOverlap(),
				OnNoise: func(p []byte) { noise = append(noise, hide.RedactStart(string(p), incoming.NoiseSize)) }}
			l.Feed([]byte(line[:at+5]))
			l.Feed([]byte(line[at+5:] + "\n"))
			if len(noise) != 1 || strings.ContainsAny(noise[0], "S3abcnop") && !strings.Contains(noise[0], redact.Mark) ||
				strings.Contains(noise[0], "S3") || len(noise[0]) > incoming.NoiseSize+len(redact.Mark) {
				t.Fatalf("at %d: %q", at, noise)
			}
			tl := outputTail{size: incoming.NoiseSize, overlap: hide.CutOverlap()}
			tl.write([]byte(strings.Repeat("z", 5000)))
			tl.write([]byte(line[:at+7]))
			tl.write([]byte(line[at+7:]))
			tl.write([]byte(strings.Repeat("w", at)))
			if got := tl.redactedText(hide); strings.Contains(got, "S3") || strings.Contains(got, "nop") || len(got) > incoming.NoiseSize+len(redact.Mark) {
				t.Fatalf("at %d: %q", at, got)
			}
		}
	}
}
