package transports

import (
	"bytes"
	"strings"
	"testing"
	"testing/quick"
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
		return tl.redactedText(&redactor{}) == string(all[max(0, len(all)-tl.size):])
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
	if got := tl.redactedText(&redactor{}); got != "line two\n" && got != "line one\nline two\n" {
		t.Errorf("%q", got)
	}
	tl = outputTail{size: 20}
	tl.write([]byte("short\n"))
	if got := tl.redactedText(&redactor{}); got != "short\n" {
		t.Errorf("%q", got)
	}
}

func TestSecretsAreHidden(t *testing.T) {
	s := newChildRedactor([]string{"postgres://u:pw@host/db", "ghp_canary_and_more"},
		[]string{"GITHUB_TOKEN=ghp_canary", "OPENAI_API_KEY=sk-canary", "db_password=canary-pw", "HOME=/home/me",
			"MY_SECRET=short", "MODE=production"})
	in := "ghp_canary ghp_canary_and_more sk-canary canary-pw postgres://u:pw@host/db short production /home/me"
	want := strings.Repeat("[redacted] ", 5) + "short production /home/me"
	if got := s.redactText(in); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := newChildRedactor(nil, nil).redactText(in); got != in {
		t.Errorf("nothing to hide, and %s", got)
	}
}

// A secret that a bound would cut is hidden whole, at every place where the cut can be.
func TestSecretsAcrossACutAreHidden(t *testing.T) {
	const secret = "S3CRET-abcdefghi/jklm nop"
	hide := newChildRedactor([]string{secret}, nil)
	for _, written := range []string{secret, "S3CRET-abcdefghi%2Fjklm+nop", `S3CRET-abcdefghi\/jklm nop`} {
		for at := range noiseSize + 10 {
			line := strings.Repeat("x", at) + written + strings.Repeat("y", noiseSize)
			var noise []string
			l := lineSplitter{limit: 1 << 20, endlessSize: 1 << 30, overlap: hide.cutOverlap(),
				onNoise: func(p []byte) { noise = append(noise, hide.redactStart(string(p), noiseSize)) }}
			l.feed([]byte(line[:at+5]))
			l.feed([]byte(line[at+5:] + "\n"))
			if len(noise) != 1 || strings.ContainsAny(noise[0], "S3abcnop") && !strings.Contains(noise[0], redactedMark) ||
				strings.Contains(noise[0], "S3") || len(noise[0]) > noiseSize+len(redactedMark) {
				t.Fatalf("at %d: %q", at, noise)
			}
			tl := outputTail{size: noiseSize, overlap: hide.cutOverlap()}
			tl.write([]byte(strings.Repeat("z", 5000)))
			tl.write([]byte(line[:at+7]))
			tl.write([]byte(line[at+7:]))
			tl.write([]byte(strings.Repeat("w", at)))
			if got := tl.redactedText(hide); strings.Contains(got, "S3") || strings.Contains(got, "nop") || len(got) > noiseSize+len(redactedMark) {
				t.Fatalf("at %d: %q", at, got)
			}
		}
	}
}
