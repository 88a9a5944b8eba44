package control

import (
	"reflect"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/access"
)

// TestRulesTravel: rules decide the same after they have travelled, including those that cannot be read.
func TestRulesTravel(t *testing.T) {
	at := access.Source{File: "/f", Line: 3, Col: 4, Scope: messages.ScopeUser}
	rule := access.MustParse(access.Deny, "fs:write(path:/etc/*)")
	rule.Source = at
	in := access.Rules{
		Managed: access.Set{Rules: []access.Rule{access.Unreadable("githb", at)}, Default: access.Ask, DefaultSource: at},
		Own:     access.Set{Rules: []access.Rule{rule, access.MustParse(access.Allow, "mcp__a")}}, Hints: true,
	}
	if out := rulesFromProto(travel(t, in.ToProto())); !reflect.DeepEqual(in, out) {
		t.Errorf("%+v", out)
	}
	newer := &messages.PermissionsReply{Own: &messages.PermissionSet{Rules: []*messages.PermissionRule{{Verdict: "allow", Text: "a:x?y("}}}}
	if d := access.Decide(rulesFromProto(newer), access.Request{Server: "b", Tool: "c"}); d.Verdict != access.Deny {
		t.Errorf("a rule that nobody can read: %+v", d)
	}
}

// travel returns a message after it was written and read.
func travel[M proto.Message](t *testing.T, m M) M {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	read := m.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(b, read); err != nil {
		t.Fatal(err)
	}
	return read.(M)
}
