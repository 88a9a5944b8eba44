package remote

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/mcpvisor/mcpvisor/messages"
)

// messageKind is the direction in which a message travels.
type messageKind int

const (
	// kindPart is part of other messages and never travels alone.
	kindPart messageKind = iota
	// kindCommand goes to a manager, and needs a right.
	kindCommand
	// kindAnswer comes from a manager.
	kindAnswer
)

// A messageRule is the rule for one message of the vocabulary. A message without a row is refused to every peer, so a
// new command stays unavailable until this table says how it is checked.
type messageRule struct {
	kind messageKind
	// server is the field that names the one server that the command is about; list is the field that names several,
	// where an empty list means all. Both are empty for a command about no server.
	server, list string
	// allServers is true for a command about all servers: its peer needs the right to all of them.
	allServers bool
	// failureReply makes the reply that reports a failure; with a nil failure it reports success. nil: the command
	// has no reply.
	failureReply func(proto.Message, *messages.Failure) proto.Message
}

// messagePrefix is the protobuf package of the vocabulary.
const messagePrefix = "mcpvisor."

// messageRules has a row for each message of messages.proto; a test keeps it complete.
var messageRules = map[string]messageRule{
	"AddServer":          {kind: kindCommand, server: "name", failureReply: doneReply},
	"RemoveServer":       {kind: kindCommand, server: "name", failureReply: doneReply},
	"EnableServer":       {kind: kindCommand, server: "name", failureReply: doneReply},
	"DisableServer":      {kind: kindCommand, server: "name", failureReply: doneReply},
	"ReconnectServer":    {kind: kindCommand, server: "name", failureReply: doneReply},
	"ProvideCredentials": {kind: kindCommand, server: "server", failureReply: doneReply},
	"SetServers": {kind: kindCommand, allServers: true, failureReply: func(_ proto.Message, f *messages.Failure) proto.Message {
		return &messages.SetServersReply{Failure: f}
	}},
	"Reload": {kind: kindCommand, allServers: true, failureReply: func(_ proto.Message, f *messages.Failure) proto.Message {
		return &messages.ReloadReply{Failure: f}
	}},
	"CallTool": {kind: kindCommand, server: "server", failureReply: func(m proto.Message, f *messages.Failure) proto.Message {
		return &messages.CallToolReply{CallId: m.(*messages.CallTool).GetCallId(), Outcome: f.GetOutcome(), Failure: f}
	}},
	"GetStatus": {kind: kindCommand, list: "names", failureReply: func(_ proto.Message, f *messages.Failure) proto.Message {
		return &messages.StatusReply{Failure: f}
	}},
	"ListTools": {kind: kindCommand, list: "servers", failureReply: func(_ proto.Message, f *messages.Failure) proto.Message {
		return &messages.ToolsReply{Failure: f}
	}},
	"ListResources": {kind: kindCommand, list: "servers", failureReply: func(_ proto.Message, f *messages.Failure) proto.Message {
		return &messages.ResourcesReply{Failures: failureList(f)}
	}},
	"ListResourceTemplates": {kind: kindCommand, list: "servers", failureReply: func(_ proto.Message, f *messages.Failure) proto.Message {
		return &messages.ResourceTemplatesReply{Failures: failureList(f)}
	}},
	"ListPrompts": {kind: kindCommand, list: "servers", failureReply: func(_ proto.Message, f *messages.Failure) proto.Message {
		return &messages.PromptsReply{Failures: failureList(f)}
	}},
	"ReadResource": {kind: kindCommand, server: "server", failureReply: func(_ proto.Message, f *messages.Failure) proto.Message {
		return &messages.ReadResourceReply{Outcome: f.GetOutcome(), Failure: f}
	}},
	"GetPrompt": {kind: kindCommand, server: "server", failureReply: func(_ proto.Message, f *messages.Failure) proto.Message {
		return &messages.GetPromptReply{Outcome: f.GetOutcome(), Failure: f}
	}},
	"Complete": {kind: kindCommand, server: "server", failureReply: func(_ proto.Message, f *messages.Failure) proto.Message {
		return &messages.CompleteReply{Failure: f}
	}},
	"GetHistory": {kind: kindCommand, server: "server", failureReply: func(_ proto.Message, f *messages.Failure) proto.Message {
		return &messages.HistoryReply{Failure: f}
	}},
	"GetLogs": {kind: kindCommand, server: "server", failureReply: func(_ proto.Message, f *messages.Failure) proto.Message {
		return &messages.LogsReply{Failure: f}
	}},
	"PingServer": {kind: kindCommand, server: "server", failureReply: func(_ proto.Message, f *messages.Failure) proto.Message {
		return &messages.PingReply{Failure: f}
	}},
	"GetPermissions": {kind: kindCommand, allServers: true, failureReply: func(_ proto.Message, f *messages.Failure) proto.Message {
		return &messages.PermissionsReply{Failure: f}
	}},
	"SubscribeResource":   {kind: kindCommand, server: "server", failureReply: doneReply},
	"UnsubscribeResource": {kind: kindCommand, server: "server", failureReply: doneReply},
	"Watch":               {kind: kindCommand, failureReply: doneReply}, // the relay filters its events by server
	"Unwatch":             {kind: kindCommand, failureReply: doneReply},
	"HandleRequests":      {kind: kindCommand, allServers: true, failureReply: doneReply},
	"ServerRequestReply":  {kind: kindCommand}, // allowed to a peer that was asked, which needs the right to HandleRequests

	"Done":                   {kind: kindAnswer},
	"SetServersReply":        {kind: kindAnswer},
	"ReloadReply":            {kind: kindAnswer},
	"CallProgress":           {kind: kindAnswer},
	"CallToolReply":          {kind: kindAnswer},
	"StatusReply":            {kind: kindAnswer},
	"ToolsReply":             {kind: kindAnswer},
	"WatchEvent":             {kind: kindAnswer},
	"ResourcesReply":         {kind: kindAnswer},
	"ResourceTemplatesReply": {kind: kindAnswer},
	"ReadResourceReply":      {kind: kindAnswer},
	"PromptsReply":           {kind: kindAnswer},
	"GetPromptReply":         {kind: kindAnswer},
	"CompleteReply":          {kind: kindAnswer},
	"HistoryReply":           {kind: kindAnswer},
	"LogsReply":              {kind: kindAnswer},
	"PingReply":              {kind: kindAnswer},
	"PermissionsReply":       {kind: kindAnswer},
	"ServerRequest":          {kind: kindAnswer},
	"ServerRequestEnded":     {kind: kindAnswer},

	"ServerSpec": {}, "ServerIsolation": {}, "ServerAuth": {}, "ServerTLS": {}, "ToolList": {}, "ReloadProblem": {},
	"ToolEntry": {}, "ChangedToolInfo": {}, "LogMessage": {}, "ServerStatus": {}, "IsolationStatus": {},
	"ResourceEntry": {}, "ResourceTemplateEntry": {}, "PromptEntry": {}, "PromptArgumentEntry": {}, "Failure": {}, "FailureChallenge": {},
	"ToolHints": {}, "IconEntry": {}, "ServerDescription": {}, "ToolSummary": {}, "QuarantinedToolInfo": {},
	"ResourceHints": {}, "HistoryEntry": {}, "LogLine": {}, "PermissionSet": {}, "PermissionRule": {}, "PermissionSource": {},

	// Of the control socket alone: no peer is asked about its calls, and none learns of the program and its configuration.
	"CallerQuestion": {}, "CallerQuestionEnded": {}, "AnswerQuestion": {}, "PermitRequest": {}, "PermitReply": {},
	"GetManager": {}, "ManagerReply": {}, "AuditState": {},
}

// failureReplyTo returns the reply to a command that ended with err, under the command's own id.
func failureReplyTo(command proto.Message, err error) proto.Message {
	reply := messageRules[messageName(command)].failureReply(command, messages.FailureOf(err))
	if m, ok := command.(interface{ GetRequestId() string }); ok {
		messages.SetRequestID(reply, m.GetRequestId())
	}
	return reply
}

// doneReply is the failureReply of commands that are answered with Done.
func doneReply(_ proto.Message, f *messages.Failure) proto.Message { return &messages.Done{Failure: f} }

// failureList returns a list with the failure, nil for none.
func failureList(f *messages.Failure) []*messages.Failure {
	if f == nil {
		return nil
	}
	return []*messages.Failure{f}
}

// Commands returns the names of all commands that a peer can have the right to, sorted.
func Commands() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(messageRules)), func(name string) bool {
		return messageRules[name].kind != kindCommand || messageRules[name].failureReply == nil
	})
}

// ReadingCommands returns the commands that change nothing and call nothing, sorted: status, past, lists and events.
func ReadingCommands() []string {
	return []string{"GetHistory", "GetLogs", "GetStatus", "ListPrompts", "ListResourceTemplates", "ListResources", "ListTools",
		"Unwatch", "Watch"}
}

// CallingCommands returns the commands that use servers, sorted: calls of tools, reads of resources, prompts.
func CallingCommands() []string {
	return []string{"CallTool", "Complete", "GetPrompt", "PingServer", "ReadResource", "SubscribeResource", "UnsubscribeResource"}
}

// messageName returns the message's key in the table.
func messageName(m proto.Message) string { return string(m.ProtoReflect().Descriptor().Name()) }

// newMessage returns an empty message for a full name if its row has the kind way, else nil: the name comes from a
// peer.
func newMessage(fullName string, way messageKind) proto.Message {
	name, hasPrefix := strings.CutPrefix(fullName, messagePrefix)
	if r, known := messageRules[name]; !hasPrefix || !known || r.kind != way {
		return nil
	}
	// The registry has every message of the program; the row was checked before, so that only ours are made.
	t, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(fullName))
	if err != nil {
		return nil
	}
	return t.New().Interface()
}

// isOurMessage reports whether a full name is that of a message of ours which travels alone.
func isOurMessage(fullName string) bool {
	name, hasPrefix := strings.CutPrefix(fullName, messagePrefix)
	return hasPrefix && messageRules[name].kind != kindPart
}

// stringField returns a field of a message that holds one string. The name must be one of a messageRule: an unknown
// one panics.
func stringField(m proto.Message, field string) string {
	r := m.ProtoReflect()
	return r.Get(r.Descriptor().Fields().ByName(protoreflect.Name(field))).String()
}

// stringsField returns a field of a message that holds several strings.
func stringsField(m proto.Message, field string) (all []string) {
	r := m.ProtoReflect()
	list := r.Get(r.Descriptor().Fields().ByName(protoreflect.Name(field))).List()
	for i := range list.Len() {
		all = append(all, list.Get(i).String())
	}
	return all
}

// setStringsField replaces the strings of a field.
func setStringsField(m proto.Message, field string, all []string) {
	r := m.ProtoReflect()
	f := r.Descriptor().Fields().ByName(protoreflect.Name(field))
	r.Clear(f)
	list := r.Mutable(f).List()
	for _, v := range all {
		list.Append(protoreflect.ValueOfString(v))
	}
}
