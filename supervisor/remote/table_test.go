package remote

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Each message of the vocabulary has a row in messageRules, so that a new command is refused until its rights are
// decided.
func TestTheTableIsComplete(t *testing.T) {
	all := messages.File_messages_messages_proto.Messages()
	if all.Len() != len(messageRules) {
		t.Errorf("messages.proto has %d messages, the table %d rows", all.Len(), len(messageRules))
	}
	for i := range all.Len() {
		name := string(all.Get(i).Name())
		row, known := messageRules[name]
		if !known {
			t.Errorf("%s has no row: nobody can send it before the table says whose right it is", name)
			continue
		}
		fields := all.Get(i).Fields()
		for _, field := range []string{row.server, row.list} {
			if field != "" && fields.ByName(protoreflect.Name(field)) == nil {
				t.Errorf("%s has no field %s", name, field)
			}
		}
		// A command that names servers is checked by them.
		for _, field := range []protoreflect.Name{"server", "servers", "names"} {
			if fields.ByName(field) != nil && row.kind == kindCommand && row.server == "" && row.list == "" && !row.allServers {
				t.Errorf("%s names servers in %s, and its row does not say so", name, field)
			}
		}
		if row.kind == kindCommand && row.failureReply != nil {
			m := newMessage(messagePrefix+name, kindCommand)
			if row.failureReply(m, messages.FailureOf(deniedError("x", "", "no", ""))) == nil {
				t.Errorf("%s cannot be refused", name)
			}
		}
	}
	if Everything().Commands == nil || slices.Contains(Everything().Commands, "ServerRequestReply") {
		t.Errorf("everything is %q", Everything().Commands)
	}
	for _, name := range slices.Concat(ReadingCommands(), CallingCommands()) {
		if !slices.Contains(Commands(), name) {
			t.Errorf("%s is no command", name)
		}
	}
}

func TestOnlyWhatTheTableNamesIsMade(t *testing.T) {
	for _, name := range []string{"CallTool", "mcpvisor.ServerSpec", "mcpvisor.CallToolReply", "mcpvisor.NoSuch", "actor.Stop", "remote.Ping", ""} {
		if m := newMessage(name, kindCommand); m != nil {
			t.Errorf("%q became %T", name, m)
		}
	}
	var _ proto.Message = newMessage("mcpvisor.CallTool", kindCommand).(*messages.CallTool)
}
