package supervisor

import (
	"strings"
	"testing"
)

// TestFits: which URIs a template could have made. The last ones guard a defect: a template of a few KiB became a regular
// expression of 100 MB, which took seconds to make and to use, for each of a server's templates and each read.
func TestFits(t *testing.T) {
	for _, c := range []struct {
		template, uri string
		want          bool
	}{
		{"file:///{path}", "file:///a", true},
		{"http://localhost:8080/{id}", "http://localhost:8080/7", true},
		{"x:{a},{b}", "x:1,2", true},
		{"x:{a:3}", "x:abc", true},
		{"x:plain", "x:plain", true},
		{"x:{a", "x:a", false},
		{"x:" + strings.Repeat("{a}/", maxNames), "x:" + strings.Repeat("b/", maxNames), true},
		{"x:" + strings.Repeat("{a}/", maxNames+1), "x:" + strings.Repeat("b/", maxNames+1), false},
		{"x:{a" + strings.Repeat(",a", maxNames) + "}", "x:b", false},
		{strings.Repeat("{a:999}", 1000), "b", false},
		{template: "{+all}", uri: "bank://accounts?pin=1234"}, // it is for no kind of resource, and so for none
		{template: "{scheme}://x", uri: "bank://x"},
	} {
		if got := TemplateFits(c.template, c.uri); got != c.want {
			t.Errorf("%.60s and %.40s: %v, want %v", c.template, c.uri, got, c.want)
		}
	}
}
