package supervisor

import "testing"

// Errors and logs show a URI without the parts that often hold secrets, and say so; every other URI as it is.
func TestAURIIsShownWithoutItsSecrets(t *testing.T) {
	for uri, want := range map[string]string{
		"file:///a/b":                       "file:///a/b",
		"x:///1":                            "x:///1",
		"https://example.org/a#part":        "https://example.org/a#part",
		"https://example.org/a?token=x":     "https://example.org/a (shortened)",
		"https://example.org/a?token=x#p":   "https://example.org/a#p (shortened)",
		"https://user:word@example.org/a":   "https://example.org/a (shortened)",
		"https://user@example.org/a?b#c":    "https://example.org/a#c (shortened)",
		"db://reader:word@host/table?key=1": "db://host/table (shortened)",
		"no uri at all":                     "no uri at all",
		"%zz":                               "%zz",
		"":                                  "",
	} {
		if got := plainURI(uri); got != want {
			t.Errorf("%q is shown as %q, not %q", uri, got, want)
		}
	}
}
