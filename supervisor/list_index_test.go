package supervisor

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
)

// What a server lists takes nothing from what is remembered of another one.
func TestTheIndexIsBoundedPerServer(t *testing.T) {
	var x listIndex
	everybody := func(string) (listOwner, bool) { return listOwner{}, true }
	x.setResources("owner", listOwner{}, []messages.Resource{{URI: "bank://accounts"}}, nil)
	flood := make([]messages.Resource, maxIndex)
	for i := range flood {
		flood[i].URI = "x://" + strconv.Itoa(i)
	}
	for _, server := range []string{"a", "b"} {
		x.setResources(server, listOwner{}, flood, nil)
	}
	if owners := x.serversListing("bank://accounts", everybody); len(owners) != 1 || owners[0] != "owner" {
		t.Errorf("remembered: %q", owners)
	}
	x.setResources("a", listOwner{}, slices.Concat(flood, []messages.Resource{{URI: "more"}}), nil)
	x.setResources("b", listOwner{}, []messages.Resource{{URI: strings.Repeat("x", maxIndexBytes+1)}}, nil)
	x.setResources("owner", listOwner{}, nil, errors.New("gone"))
	if owners := x.serversListing("bank://accounts", everybody); len(owners) != 1 || len(x.resources) != 1 {
		t.Errorf("remembered: %q of %d servers", owners, len(x.resources))
	}
}

// What was listed for one account, or for another spec, is not remembered for those who come after it.
func TestTheIndexBelongsToTheCredentials(t *testing.T) {
	ann := listOwner{spec: &messages.Spec{URL: "https://example.com", Headers: map[string]string{"Authorization": "Bearer ann"}}, account: "1"}
	for name, now := range map[string]listOwner{
		"another account": {spec: ann.spec, account: "2"},
		"nobody":          {spec: ann.spec},
		"another token":   {spec: &messages.Spec{URL: ann.spec.URL, Headers: map[string]string{"Authorization": "Bearer bob"}}, account: "1"},
	} {
		var x listIndex
		x.setResources("bank", ann, []messages.Resource{{URI: "bank://ann"}}, nil)
		same := listOwner{spec: &messages.Spec{URL: ann.spec.URL, Headers: ann.spec.Headers, CallTimeout: 1}, account: "1"}
		if got := x.serversListing("bank://ann", func(string) (listOwner, bool) { return same, true }); len(got) != 1 {
			t.Errorf("%s: the same credentials find %q", name, got)
		}
		if got := x.serversListing("bank://ann", func(string) (listOwner, bool) { return now, true }); len(got) > 0 {
			t.Errorf("%s is told of %q", name, got)
		}
		if len(x.resources) > 0 {
			t.Errorf("%s: it is still remembered", name)
		}
	}
}
