package transports_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"golang.org/x/net/http/httpguts"

	"github.com/mcpvisor/mcpvisor/transports"
)

// TestHeaderValue holds the examples of the specification's Value Encoding.
func TestHeaderValue(t *testing.T) {
	for value, want := range map[string]string{
		"us-west1":           "us-west1",
		"Hello, 世界":          "=?base64?SGVsbG8sIOS4lueVjA==?=",
		" padded ":           "=?base64?IHBhZGRlZCA=?=",
		"line1\nline2":       "=?base64?bGluZTEKbGluZTI=?=",
		"=?base64?literal?=": "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
		"":                   "",
		"a b":                "a b",
		"~":                  "~",
		"a\tb":               "=?base64?YQli?=",
		"\x7f":               "=?base64?fw==?=",
		"=?base64?":          "=?base64?",
		"=?BASE64?x?=":       "=?BASE64?x?=",
		"=?base64?=":         "=?base64?PT9iYXNlNjQ/PQ==?=",
	} {
		if got := transports.HeaderValue(value); got != want {
			t.Errorf("%q: got %q, want %q", value, got, want)
		}
	}
}

func FuzzHeaderValue(f *testing.F) {
	for _, s := range []string{"", "a", " a", "a\r\nX: y", "=?base64?YQ==?=", "ä", "\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		got := transports.HeaderValue(value)
		if !httpguts.ValidHeaderFieldValue(got) || strings.TrimSpace(got) != got {
			t.Fatalf("%q became %q, which is no header value", value, got)
		}
		back := got
		if inner, ok := strings.CutPrefix(got, "=?base64?"); ok && strings.HasSuffix(inner, "?=") {
			b, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(inner, "?="))
			if err != nil {
				t.Fatalf("%q became %q: %v", value, got, err)
			}
			back = string(b)
		}
		if back != value {
			t.Fatalf("%q became %q, which is %q", value, got, back)
		}
	})
}
