package messages_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

func TestMatchPattern(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "a\nb", true}, {"**", "", true},
		{"get_*", "get_a", true}, {"get_*", "get_", true}, {"get_*", "forget_a", false},
		{"*_delete", "user_delete", true}, {"*_delete", "_delete", true}, {"*_delete", "user_deleted", false},
		{"*admin*", "list_admins", true}, {"*admin*", "list_users", false},
		{"a*b*c", "abc", true}, {"a*b*c", "a-b-b-c", true}, {"a*b*c", "acb", false},
		// The parts may not overlap.
		{"a*a", "a", false}, {"ab*bc", "abc", false}, {"*ab*ab", "aab", false}, {"*ab*ab", "abab", true},
		{"a?c", "abc", false}, {"[a]", "a", false}, {`\*`, "*", false}, {`\*`, `\x`, true},
		{"A*", "ab", false}, {"é*", "éa", true},
		{strings.Repeat("a*", 20) + "b", strings.Repeat("a", 20) + "b", true},
	} {
		if got := messages.MatchPattern(c.pattern, c.text); got != c.want {
			t.Errorf("%q and %q: %v", c.pattern, c.text, got)
		}
	}
	if messages.MatchParts(nil, "") || !messages.MatchParts([]string{"*", "x"}, "*ax") {
		t.Error("a star in a part is a star")
	}
}

// FuzzMatchPattern holds the matcher to a regular expression of the same meaning.
func FuzzMatchPattern(f *testing.F) {
	for _, s := range [][2]string{{"*a*b", "xaybzb"}, {"a**", "a"}, {"*", ""}, {"a*a", "a"}, {"ab*bc*", "abbcd"}} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		meant, err := regexp.Compile(`(?s)\A` + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, `.*`) + `\z`)
		if err != nil {
			return // its bytes are no UTF-8
		}
		if got := messages.MatchPattern(pattern, text); got != meant.MatchString(text) {
			t.Errorf("%q and %q: %v", pattern, text, got)
		}
	})
}

func TestMatchPatternTakesNoMemory(t *testing.T) {
	if n := testing.AllocsPerRun(100, func() { messages.MatchPattern("mcp__*__get_*", "mcp__notes__get_all") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
