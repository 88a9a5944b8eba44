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

// messageKind says which way a message travels.
type messageKind int

const (
	// kindPart stands inside other messages and never travels alone.
	kindPart messageKind = iota
	// kindCommand goes to a manager, by right.
	kindCommand
	// kindAnswer comes from a manager.
	kindAnswer
)

// messageRule is what the gate knows of one message of the vocabulary. A message without a row is refused to everybody, so that a
// new command is nobody's before this table says whose it can be.
type messageRule struct {
	kind messageKind
	// server is the field that names the one server that the command is about, list the one that names several, where none
	// means all.
	server, list string
	// allServers says that the command is about all servers: its peer needs the right to all of them.
	allServers bool
	// failureReply makes the reply that tells a failure; without a failure it tells success. nil: the command has no reply.
	failureReply func(proto.Message, *messages.Failure) proto.Message
}

const messagePrefix = "mcpvisor."

// messageRules has a row for each message of messages.proto; a test holds that.
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
	"ReadResource": {kind: kindCommand, server: "server", failureReply: func(m proto.Message, f *messages.Failure) proto.Message {
		return &messages.ReadResourceReply{RequestId: m.(*messages.ReadResource).GetRequestId(), Outcome: f.GetOutcome(), Failure: f}
	}},
	"GetPrompt": {kind: kindCommand, server: "server", failureReply: func(m proto.Message, f *messages.Failure) proto.Message {
		return &messages.GetPromptReply{RequestId: m.(*messages.GetPrompt).GetRequestId(), Outcome: f.GetOutcome(), Failure: f}
	}},
	"Complete": {kind: kindCommand, server: "server", failureReply: func(m proto.Message, f *messages.Failure) proto.Message {
		return &messages.CompleteReply{RequestId: m.(*messages.Complete).GetRequestId(), Failure: f}
	}},
	"SubscribeResource":   {kind: kindCommand, server: "server", failureReply: doneReply},
	"UnsubscribeResource": {kind: kindCommand, server: "server", failureReply: doneReply},
	"Watch":               {kind: kindCommand, failureReply: doneReply}, // its events are sifted by server
	"Unwatch":             {kind: kindCommand, failureReply: doneReply},
	"HandleRequests":      {kind: kindCommand, allServers: true, failureReply: doneReply},
	"ServerRequestReply":  {kind: kindCommand}, // by the right to HandleRequests

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
	"ServerRequest":          {kind: kindAnswer},
	"ServerRequestEnded":     {kind: kindAnswer},

	"ServerSpec": {}, "ServerIsolation": {}, "ServerAuth": {}, "ServerTLS": {}, "ToolList": {}, "ReloadProblem": {},
	"ToolEntry": {}, "ChangedToolInfo": {}, "LogMessage": {}, "ServerStatus": {}, "IsolationStatus": {},
	"ResourceEntry": {}, "ResourceTemplateEntry": {}, "PromptEntry": {}, "PromptArgumentEntry": {}, "Failure": {},
}

func doneReply(_ proto.Message, f *messages.Failure) proto.Message { return &messages.Done{Failure: f} }

func failureList(f *messages.Failure) []*messages.Failure {
	if f == nil {
		return nil
	}
	return []*messages.Failure{f}
}

// Commands are the names of all commands that a peer can have the right to, sorted.
func Commands() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(messageRules)), func(name string) bool {
		return messageRules[name].kind != kindCommand || messageRules[name].failureReply == nil
	})
}

// ReadingCommands change nothing and call nothing, sorted: status, lists and events.
func ReadingCommands() []string {
	return []string{"GetStatus", "ListPrompts", "ListResourceTemplates", "ListResources", "ListTools", "Unwatch", "Watch"}
}

// CallingCommands use servers, sorted: calls of tools, reads of resources, prompts.
func CallingCommands() []string {
	return []string{"CallTool", "Complete", "GetPrompt", "ReadResource", "SubscribeResource", "UnsubscribeResource"}
}

// messageName is the message's key in the table.
func messageName(m proto.Message) string { return string(m.ProtoReflect().Descriptor().Name()) }

// newMessage makes an empty message that travels that way; nil for a name that has no such row.
func newMessage(fullName string, way messageKind) proto.Message {
	name, hasPrefix := strings.CutPrefix(fullName, messagePrefix)
	if r, known := messageRules[name]; !hasPrefix || !known || r.kind != way {
		return nil
	}
	t, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(fullName))
	if err != nil {
		return nil
	}
	return t.New().Interface()
}

// isOurMessage reports whether a name is that of a message of ours.
func isOurMessage(fullName string) bool {
	name, hasPrefix := strings.CutPrefix(fullName, messagePrefix)
	return hasPrefix && messageRules[name].kind != kindPart
}

// stringField is a field of a message that holds one string.
func stringField(m proto.Message, field string) string {
	r := m.ProtoReflect()
	return r.Get(r.Descriptor().Fields().ByName(protoreflect.Name(field))).String()
}

// stringsField is a field of a message that holds several.
func stringsField(m proto.Message, field string) (all []string) {
	r := m.ProtoReflect()
	list := r.Get(r.Descriptor().Fields().ByName(protoreflect.Name(field))).List()
	for i := range list.Len() {
		all = append(all, list.Get(i).String())
	}
	return all
}

// setStringsField replaces what texts reads.
func setStringsField(m proto.Message, field string, all []string) {
	r := m.ProtoReflect()
	f := r.Descriptor().Fields().ByName(protoreflect.Name(field))
	r.Clear(f)
	list := r.Mutable(f).List()
	for _, v := range all {
		list.Append(protoreflect.ValueOfString(v))
	}
}
