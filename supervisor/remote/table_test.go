package remote

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
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
		if isAnswered(name) {
			refused := refusal.ReplyTo(newMessage(messagePrefix+name, kindCommand), deniedError("x", "", "no", ""))
			if messageRules[messageName(refused)].kind != kindAnswer || !strings.Contains(fmt.Sprint(refused), "no") {
				t.Errorf("%s cannot be refused: %v", name, refused)
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

// TestAReplyRepeatsTheIds: who waits for the reply to a call finds it by the call's own ids, and its outcome beside the failure.
func TestAReplyRepeatsTheIds(t *testing.T) {
	call := &messages.CallTool{CallId: "c1"}
	refused, ok := refusal.ReplyTo(call, &messages.Error{Outcome: messages.OutcomeNotSent, Text: "no"}).(*messages.CallToolReply)
	if !ok || refused.GetCallId() != "c1" || refused.GetOutcome() != string(messages.OutcomeNotSent) || refused.GetFailure().GetText() != "no" {
		t.Errorf("%v", refused)
	}
	done, ok := refusal.ReplyTo(&messages.EnableServer{RequestId: "r2"}, nil).(*messages.Done)
	if !ok || done.GetRequestId() != "r2" || done.GetFailure() != nil {
		t.Errorf("%v", done)
	}
	if all, ok := refusal.ReplyTo(&messages.ListPrompts{}, &messages.Error{Text: "no"}).(*messages.PromptsReply); !ok || len(all.GetFailures()) != 1 {
		t.Errorf("%v", all)
	}
}
