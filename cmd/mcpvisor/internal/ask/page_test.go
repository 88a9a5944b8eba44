package ask

import (
	"strings"
	"testing"
)

// TestHostsOfPagesAreShownSafely checks JudgeURL: a person decides by the host, so that nothing in it may be hidden or act on
// the terminal.
func TestHostsOfPagesAreShownSafely(t *testing.T) {
	for raw, want := range map[string]string{
		"https://example.com%C2%9B31m.evil/":  "hidden or written in percent codes",
		"https://example.com%E2%80%AE.evil/":  "hidden or written in percent codes",
		"https://example.com%E2%80%8B/":       "hidden or written in percent codes",
		"https://example.com%F3%A0%81%81/":    "hidden or written in percent codes",
		"https://user:%41@example.com%C2%85/": "hidden or written in percent codes",
		"https://e\u200bxample.com/":          "no well-formed URL",
		"https://[fe80::1%25eth0]/":           "hidden or written in percent codes",
		"https://xn--a\u0301.example/":        "no valid name",
	} {
		if host, remarks, ok := JudgeURL(raw); ok || host != "" && !strings.Contains(strings.Join(remarks, "\n"), "no valid") ||
			!strings.Contains(strings.Join(remarks, "\n"), want) {
			t.Errorf("%q: %q, %q, %v", raw, host, remarks, ok)
		}
	}
	for raw, want := range map[string]string{
		"https://g\u0456thub.com/": "mixes alphabets",
		"https://0x7f.1/":          "this machine itself", "https://2130706433/": "this machine itself",
		"https://127.1/": "this machine itself", "http://localhost./": "this machine itself",
		"https://foo.localhost/": "this machine itself", "https://[::ffff:127.0.0.1]/": "this machine itself",
		"https://0177.0.0.1/": "this machine itself", "http://localhost:8080/": "this machine itself",
		"https://169.254.169.254./": "no public one", "https://10.1/": "no public one", "https://[fd00::1]/": "no public one",
		"https://8.8.8.8/": "a number instead",
	} {
		host, remarks, ok := JudgeURL(raw)
		if !ok || host == "" || !strings.Contains(strings.Join(remarks, "\n"), want) {
			t.Errorf("%q: %q, %q, %v", raw, host, remarks, ok)
		}
	}
	host, _, _ := JudgeURL("https://g\u0456thub.com/")
	if host != "g\u0456thub.com (xn--gthub-n4a.com)" && !strings.Contains(host, "(xn--") {
		t.Errorf("%q", host)
	}
	for _, raw := range []string{"https://example.com/a%20b?c=%C2%9B", "https://1.example/", "https://256.256.256.256.example/"} {
		if host, remarks, ok := JudgeURL(raw); !ok || len(remarks) > 0 {
			t.Errorf("%q: %q, %q, %v", raw, host, remarks, ok)
		}
	}
}

// FuzzJudged checks for any URL that a host is named if the page may be opened, and that it holds nothing that acts on a
// terminal.
func FuzzJudged(f *testing.F) {
	f.Add("https://xn--gthub-n4a.com/")
	f.Add("http://0x7f.1.2%C2%9B/")
	f.Fuzz(func(t *testing.T, raw string) {
		host, _, ok := JudgeURL(raw)
		if ok && host == "" || strings.ContainsAny(host, "\x1b\u009b\u202e\u200b\n") {
			t.Errorf("%q: %q, %v", raw, host, ok)
		}
	})
}
