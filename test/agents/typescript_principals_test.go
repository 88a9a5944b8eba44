package agents

import (
	"strings"
	"testing"
)

// TestTwoPrincipalsOfTheTypeScriptSDK has clients of both versions, in both eras, answer what the instances of two principals ask at the same time:
// each is asked what its own calls have caused.
func TestTwoPrincipalsOfTheTypeScriptSDK(t *testing.T) {
	t.Parallel()
	url := serveTwo(t)
	for _, client := range []struct {
		name, era string
		sdk       int
	}{{"version 1", "legacy", 1}, {"version 2", "legacy", 2}, {"version 2, modern", "auto", 2}} {
		t.Run(client.name, func(t *testing.T) {
			clients := map[string]*foreign{}
			for _, person := range []string{"ann", "bob"} {
				c := newForeign(t, t.TempDir())
				c.do("connect", members{"sdk": client.sdk, "era": client.era, "url": url, "timeoutMs": 60_000, "headers": members{"Authorization": "Bearer " + person + "-token-of-a-test"},
					"answers": members{"elicitation": members{"action": "accept", "content": members{"name": person}},
						"sampling": members{"role": "assistant", "model": "m", "content": members{"type": "text", "text": person}}}})
				c.awaits("list", members{"what": "tools"}, `"own__ask"`)
				clients[person] = c
			}
			for _, tool := range []string{"own__ask", "own__sample"} {
				for range 10 {
					begun := map[string]<-chan reply{}
					for person, c := range clients {
						begun[person] = c.begin("call", members{"name": tool, "args": members{}})
					}
					for person, c := range clients {
						if r := c.await(begun[person]); r.Error != nil || !strings.Contains(string(r.Value), person+`"`) {
							t.Fatalf("%s of %s: %s, %v", tool, person, r.Value, r.Error)
						}
					}
				}
			}
			for _, c := range clients {
				c.do("close", nil)
			}
		})
	}
}
