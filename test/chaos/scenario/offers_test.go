package scenario

import "testing"

// TestHas: announcements and subscriptions need what they are about.
func TestHas(t *testing.T) {
	for _, c := range []struct {
		lacks, has, hasNot string
	}{
		{"", HasSubscribe, ""},
		{HasResources, HasPrompts, HasResources},
		{HasResources, HasPromptChanges, HasResourceChanges},
		{HasResources, HasCompletions, HasSubscribe},
		{HasPrompts + "," + HasCompletions, HasResources, HasPromptChanges},
		{HasSubscribe, HasResourceChanges, HasSubscribe},
	} {
		s := Server{Offers: true, Lacks: c.lacks}
		if !s.Has(c.has) || c.hasNot != "" && s.Has(c.hasNot) || (Server{}).Has(c.has) {
			t.Errorf("of a server that lacks %q: %s %t, %s %t", c.lacks, c.has, s.Has(c.has), c.hasNot, s.Has(c.hasNot))
		}
	}
	s := Server{Offers: true, Lacks: HasSubscribe + "," + HasPrompts}
	for method, want := range map[string]bool{
		"resources/read": true, "resources/subscribe": false, "resources/unsubscribe": false, "prompts/get": false, "completion/complete": true, "tools/list": false,
	} {
		if s.HasMethod(method) != want {
			t.Errorf("%s: %t", method, !want)
		}
	}
}
