package listindex

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
	var x Index
	everybody := func(string) (Owner, bool) { return Owner{}, true }
	x.SetResources("owner", Owner{}, []messages.Resource{{URI: "bank://accounts"}}, nil)
	flood := make([]messages.Resource, maxIndex)
	for i := range flood {
		flood[i].URI = "x://" + strconv.Itoa(i)
	}
	for _, server := range []string{"a", "b"} {
		x.SetResources(server, Owner{}, flood, nil)
	}
	if owners := x.ServersListing("bank://accounts", everybody); len(owners) != 1 || owners[0] != "owner" {
		t.Errorf("remembered: %q", owners)
	}
	x.SetResources("a", Owner{}, slices.Concat(flood, []messages.Resource{{URI: "more"}}), nil)
	x.SetResources("b", Owner{}, []messages.Resource{{URI: strings.Repeat("x", maxIndexBytes+1)}}, nil)
	x.SetResources("owner", Owner{}, nil, errors.New("gone"))
	if owners := x.ServersListing("bank://accounts", everybody); len(owners) != 1 || len(x.resources) != 1 {
		t.Errorf("remembered: %q of %d servers", owners, len(x.resources))
	}
}

// What was listed for one account, or for another spec, is not remembered for those who come after it.
func TestTheIndexBelongsToTheCredentials(t *testing.T) {
	ann := Owner{Spec: &messages.Spec{URL: "https://example.com", Headers: map[string]string{"Authorization": "Bearer ann"}}, Account: "1"}
	for name, now := range map[string]Owner{
		"another account": {Spec: ann.Spec, Account: "2"},
		"nobody":          {Spec: ann.Spec},
		"another token":   {Spec: &messages.Spec{URL: ann.Spec.URL, Headers: map[string]string{"Authorization": "Bearer bob"}}, Account: "1"},
	} {
		var x Index
		x.SetResources("bank", ann, []messages.Resource{{URI: "bank://ann"}}, nil)
		same := Owner{Spec: &messages.Spec{URL: ann.Spec.URL, Headers: ann.Spec.Headers, CallTimeout: 1}, Account: "1"}
		if got := x.ServersListing("bank://ann", func(string) (Owner, bool) { return same, true }); len(got) != 1 {
			t.Errorf("%s: the same credentials find %q", name, got)
		}
		if got := x.ServersListing("bank://ann", func(string) (Owner, bool) { return now, true }); len(got) > 0 {
			t.Errorf("%s is told of %q", name, got)
		}
		if len(x.resources) > 0 {
			t.Errorf("%s: it is still remembered", name)
		}
	}
}
