package definitions

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Every member of serverInfo is read; one of a wrong type stays empty, and costs the others nothing.
func TestEveryMemberOfAServerIsRead(t *testing.T) {
	all := messages.ServerInfo{Name: "n", Version: "1", Title: "t", Description: "d", WebsiteURL: "https://w",
		Icons: []messages.Icon{{Src: "https://a/i.png", MIMEType: "image/png", Sizes: []string{"48x48", "any"}, Theme: "dark"}, {Src: "data:image/png;base64,AA=="}}}
	got := ReadServerInfo([]byte(`{"name":"n","x":[1],"version":"1","title":"t","description":"d","websiteUrl":"https://w","icons":[` +
		`{"src":"https://a/i.png","mimeType":"image/png","sizes":["48x48","any"],"theme":"dark"},5,{"src":"javascript:x"},{"mimeType":"image/png"},` +
		`{"src":"file:///x"},{"src":"data:image/png;base64,AA=="}]}`))
	if !reflect.DeepEqual(got, all) {
		t.Errorf("%+v", got)
	}
	if got := ReadServerInfo([]byte(`{"name":5,"version":null,"title":{},"description":[],"websiteUrl":1,"icons":{}}`)); !reflect.DeepEqual(got, messages.ServerInfo{}) {
		t.Errorf("of wrong types: %+v", got)
	}
	for _, raw := range []string{`5`, `null`, `[]`, `"x"`} {
		if got := ReadServerInfo([]byte(raw)); !reflect.DeepEqual(got, messages.ServerInfo{}) {
			t.Errorf("%s: %+v", raw, got)
		}
	}
	many := make([]string, 100)
	for i := range many {
		many[i] = fmt.Sprintf(`{"src":"https://a/%d"}`, i)
	}
	if got := ReadServerInfo([]byte(`{"icons":[` + strings.Join(many, ",") + `]}`)); len(got.Icons) != maxIcons || got.Icons[maxIcons-1].Src != fmt.Sprintf("https://a/%d", maxIcons-1) {
		t.Errorf("%d icons are kept", len(got.Icons))
	}
}
