package pins

import (
	"strconv"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// The tools beyond the limit share one hash, which is that of version 1 until they are seen again unchanged.
func TestVersionOneBeyondTheLimit(t *testing.T) {
	one, two := messages.Tool{Name: "one", Description: "1"}, messages.Tool{Name: "two", Description: "2"}
	k := serverPins{beyondLimit: {Approved: []string{versionOneDigest([]*messages.Tool{&two, &one})}}}
	for i := range maxTools {
		k[strconv.Itoa(i)] = &pin{Approved: []string{"v2:0"}, Gone: true}
	}
	b := pinsByServer{"a": k}
	if changed, full := b.updatePins("a", []offeredTool{{tool: &one}, {tool: &two}}, nil); !changed || full {
		t.Error("nothing was learned")
	}
	if p := k[beyondLimit]; len(p.Approved) != 1 || !strings.HasPrefix(p.Approved[0], hashPrefix) || p.Now != "" {
		t.Errorf("%+v", p)
	}
	two.Description = "3"
	b.updatePins("a", []offeredTool{{tool: &one}, {tool: &two}}, nil)
	if p := k[beyondLimit]; !strings.HasPrefix(p.Now, hashPrefix) {
		t.Errorf("%+v", p)
	}
}
