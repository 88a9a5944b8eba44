package signin

import (
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// TestOtherNamesAreNoInstances: what follows the @ is a principal that can stand there, or what stands in the place of one that cannot.
func TestOtherNamesAreNoInstances(t *testing.T) {
	sum := strings.Repeat("0a", 16)
	for rest, want := range map[string]bool{
		"anna": true, "anna@example.com": true, "two_words~" + sum: true, "~" + sum: true, "": false, "two words": false, "a/b": false,
		"two words~" + sum: false, "a~" + sum[2:]: false, "a~" + strings.ToUpper(sum): false, "~": false, strings.Repeat("x", 65): false,
		strings.Repeat("x", 25) + "~" + sum: false, "a~b~" + sum: false, "a\n": false,
	} {
		if got := isInstanceName("github", rest); got != want {
			t.Errorf("%q: %v", rest, got)
		}
	}
	for _, principal := range []string{"anna", "two words", "\x1b[31m", strings.Repeat("x", 1000), "é"} {
		if rest := strings.TrimPrefix(messages.InstanceName("github", principal), "github@"); !isInstanceName("github", rest) {
			t.Errorf("%q is no name", rest)
		}
	}
}
