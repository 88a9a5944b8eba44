package refusal

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/mcpvisor/mcpvisor/messages"
)

// replies has the message that answers each command of other actors. A command without a row has no reply.
var replies = map[string]proto.Message{
	"AddServer":             &messages.Done{},
	"RemoveServer":          &messages.Done{},
	"EnableServer":          &messages.Done{},
	"DisableServer":         &messages.Done{},
	"ReconnectServer":       &messages.Done{},
	"ProvideCredentials":    &messages.Done{},
	"SetServers":            &messages.SetServersReply{},
	"Reload":                &messages.ReloadReply{},
	"CallTool":              &messages.CallToolReply{},
	"GetStatus":             &messages.StatusReply{},
	"ListTools":             &messages.ToolsReply{},
	"ListResources":         &messages.ResourcesReply{},
	"ListResourceTemplates": &messages.ResourceTemplatesReply{},
	"ListPrompts":           &messages.PromptsReply{},
	"ReadResource":          &messages.ReadResourceReply{},
	"GetPrompt":             &messages.GetPromptReply{},
	"Complete":              &messages.CompleteReply{},
	"GetHistory":            &messages.HistoryReply{},
	"GetLogs":               &messages.LogsReply{},
	"PingServer":            &messages.PingReply{},
	"GetPermissions":        &messages.PermissionsReply{},
	"SubscribeResource":     &messages.Done{},
	"UnsubscribeResource":   &messages.Done{},
	"Watch":                 &messages.Done{},
	"Unwatch":               &messages.Done{},
	"HandleRequests":        &messages.Done{},
}

// HasReply reports whether a message of package messages is a command that is answered.
func HasReply(name string) bool { return replies[name] != nil }

// ReplyTo returns the reply to a command that ended with err, nil for success, under the command's own ids. Another message than a command is
// answered with a *messages.Failure. It returns nil for a message that gets no answer: a reply, and a Failure itself, because two actors
// that refuse each other's Failures would do so for ever.
func ReplyTo(message any, err error) proto.Message {
	failure := messages.FailureOf(err)
	command, ours := message.(proto.Message)
	if !ours || command.ProtoReflect().Descriptor().ParentFile() != messages.File_messages_messages_proto {
		return failure
	}
	asked := command.ProtoReflect()
	row := replies[string(asked.Descriptor().Name())]
	if row == nil {
		return nil
	}
	reply := row.ProtoReflect().New()
	fields := reply.Descriptor().Fields()
	if failure != nil {
		if one := fields.ByName("failure"); one != nil {
			reply.Set(one, protoreflect.ValueOfMessage(failure.ProtoReflect()))
		} else {
			reply.Mutable(fields.ByName("failures")).List().Append(protoreflect.ValueOfMessage(failure.ProtoReflect()))
		}
		if outcome := fields.ByName("outcome"); outcome != nil {
			reply.Set(outcome, protoreflect.ValueOfString(failure.GetOutcome()))
		}
	}
	for _, id := range []protoreflect.Name{"request_id", "call_id", "server"} {
		if to, from := fields.ByName(id), asked.Descriptor().Fields().ByName(id); to != nil && from != nil {
			reply.Set(to, asked.Get(from))
		}
	}
	return reply.Interface()
}
