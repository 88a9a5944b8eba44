package ask

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// nastyTextOfServer holds characters that act on a terminal or are not seen there, as the text of the server "nasty" in the
// command's tests.
const nastyTextOfServer = "n\x1b[2J\x1b]52;c;eA==\x07\u009b31m\u009dx\u009c\u202e\u2066\u200b\u200d\ufeff\u2028\u00ad\U000e0041\r\b\x00g\u0456thub"

// actsOnTerminal matches characters that no question may hold.
var actsOnTerminal = regexp.MustCompile(`[\x00-\x08\x0b-\x1f\x7f\x{80}-\x{9f}\x{ad}\x{200b}-\x{200f}\x{2028}-\x{202e}\x{2060}-\x{2069}\x{feff}\x{e0000}-\x{e007f}]`)

// TestNothingThatIsAskedActs checks that nothing in a question of a server acts on the terminal: names of fields, titles, choices,
// defaults and addresses of pages.
func TestNothingThatIsAskedActs(t *testing.T) {
	text, err := json.Marshal(nastyTextOfServer)
	if err != nil {
		t.Fatal(err)
	}
	schema := strings.NewReplacer("NASTY", string(text)).Replace(`{"type":"object","required":[NASTY],"properties":{NASTY:{"type":"string",
		"title":NASTY,"description":NASTY,"oneOf":[{"const":NASTY,"title":NASTY},{"const":"b","title":NASTY}],"default":NASTY},
		"many":{"type":"array","items":{"enum":[NASTY,"b"]},"default":[NASTY]},"free":{"type":"string","default":NASTY,"format":NASTY}}}`)
	for _, r := range []messages.ElicitRequest{
		{Server: nastyTextOfServer, Message: nastyTextOfServer, Schema: json.RawMessage(schema)},
		{Server: nastyTextOfServer, Message: nastyTextOfServer, Mode: messages.ElicitURL, URL: "https://" + nastyTextOfServer + "/"},
		{Server: nastyTextOfServer, Message: nastyTextOfServer, Mode: messages.ElicitURL, URL: "https://a.example%C2%9B31m%E2%80%AE/%C2%9B?%E2%80%AE#%E2%80%8B"},
		{Server: nastyTextOfServer, Message: nastyTextOfServer, Mode: messages.ElicitURL, URL: "https://u%C2%9B:p%E2%80%AE@a.example/%C2%9B?%E2%80%AE#%E2%80%8B"},
	} {
		_, shown, _ := talked(t, r, &Prompter{}, "a", "", "", "", "zz", "1", "", "", "s", "d")
		if found := actsOnTerminal.FindString(shown); found != "" || shown == "" {
			t.Errorf("%q is shown of %q: %q", found, r.URL, shown)
		}
	}
}
