package opener

import "testing"

// TestCheckURL: a kind may have one scheme or many, and what is said of a URL repeats nothing of it but its scheme.
func TestCheckURL(t *testing.T) {
	for _, c := range []struct {
		schemes   []string
		raw, want string
	}{
		{[]string{"unix"}, "unix://socket", ""},
		{[]string{"unix"}, "http://secret@host", `its url must begin with unix://, not "http"`},
		{[]string{"ws", "wss", "http"}, "ftp://host", `its url must begin with ws:// or wss://, not "ftp"`},
		{[]string{"ws", "wss", "http"}, "http://host", ""},
		{[]string{"http", "https"}, "http:///path", "its url names no host"},
		{[]string{"http", "https"}, "http://a b/secret", "its url cannot be parsed"},
	} {
		if got := checkURL(c.schemes, c.raw); got != c.want {
			t.Errorf("%s of %v: %q, want %q", c.raw, c.schemes, got, c.want)
		}
	}
}
