package score

import (
	"strings"
	"testing"
)

// TestThePageShowsTheReasons: what a client says cannot act in the browser, and each lost point has its reason.
func TestThePageShowsTheReasons(t *testing.T) {
	r := Result{Name: "one", About: "one 1.0 <script>", Cases: []CaseResult{
		{Number: 1, Name: Cases()[0].Name, Points: []Point{{Must: "a", Got: true}, {Must: "it ends", Seen: "<b>never\x1b[2J"}}, With: []int{7}, TookMs: 1500},
		{Number: 2, Name: Cases()[1].Name, Points: []Point{{Must: "a", Got: true}}},
	}}
	b, err := Page([]Result{r}, "mcpvisor chaos score")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	for _, want := range []string{"1/2", "1/1", "it ends: &lt;b&gt;never", "with [7]", `width:66%`} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in the page", want)
		}
	}
	if strings.Contains(text, "<script>") || strings.Contains(text, "\x1b") {
		t.Error("a text of the client acts in the page")
	}
}
