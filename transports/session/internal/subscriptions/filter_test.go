package subscriptions

import "testing"

// TestFilterAsksForWhatIsWanted: each list is asked for by its own name, and resources are watched by their URIs.
func TestFilterAsksForWhatIsWanted(t *testing.T) {
	for want, f := range map[string]Filter{
		`"notifications":{}`:                                                      {},
		`"notifications":{"toolsListChanged":true}`:                               {Tools: true},
		`"notifications":{"promptsListChanged":true}`:                             {Prompts: true},
		`"notifications":{"resourcesListChanged":true}`:                           {Resources: true},
		`"notifications":{"resourceSubscriptions":["mem:a","mem:b"]}`:             {URIs: []string{"mem:a", "mem:b"}},
		`"notifications":{"toolsListChanged":true,"resourceSubscriptions":["x"]}`: {Tools: true, URIs: []string{"x"}},
	} {
		if got := string(f.AppendParams(nil)); got != want {
			t.Errorf("%+v asks for %s, not %s", f, got, want)
		}
	}
}
