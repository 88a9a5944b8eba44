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

// kind says which way a message travels.
type kind int

const (
	// part stands inside other messages and never travels alone.
	part kind = iota
	// command goes to a manager, by right.
	command
	// answer comes from a manager.
	answer
)

// row is what the gate knows of one message of the vocabulary. A message without a row is refused to everybody, so that a
// new command is nobody's before this table says whose it can be.
type row struct {
	kind kind
	// server is the field that names the one server that the command is about, list the one that names several, where none
	// means all.
	server, list string
	// every says that the command is about all servers: its peer needs the right to all of them.
	every bool
	// refuse makes the reply that tells a failure; without a failure it tells success. nil: the command has no reply.
	refuse func(proto.Message, *messages.Failure) proto.Message
}

const prefix = "mcpvisor."

// table has a row for each message of messages.proto; a test holds that.
var table = map[string]row{
	"AddServer":          {kind: command, server: "name", refuse: done},
	"RemoveServer":       {kind: command, server: "name", refuse: done},
	"EnableServer":       {kind: command, server: "name", refuse: done},
	"DisableServer":      {kind: command, server: "name", refuse: done},
	"ReconnectServer":    {kind: command, server: "name", refuse: done},
	"ProvideCredentials": {kind: command, server: "server", refuse: done},
	"SetServers": {kind: command, every: true, refuse: func(_ proto.Message, f *messages.Failure) proto.Message {
		return &messages.SetServersReply{Failure: f}
	}},
	"Reload": {kind: command, every: true, refuse: func(_ proto.Message, f *messages.Failure) proto.Message {
		return &messages.ReloadReply{Failure: f}
	}},
	"CallTool": {kind: command, server: "server", refuse: func(m proto.Message, f *messages.Failure) proto.Message {
		return &messages.CallToolReply{CallId: m.(*messages.CallTool).GetCallId(), Outcome: f.GetOutcome(), Failure: f}
	}},
	"GetStatus": {kind: command, list: "names", refuse: func(_ proto.Message, f *messages.Failure) proto.Message {
		return &messages.StatusReply{Failure: f}
	}},
	"ListTools": {kind: command, list: "servers", refuse: func(_ proto.Message, f *messages.Failure) proto.Message {
		return &messages.ToolsReply{Failure: f}
	}},
	"ListResources": {kind: command, list: "servers", refuse: func(_ proto.Message, f *messages.Failure) proto.Message {
		return &messages.ResourcesReply{Failures: some(f)}
	}},
	"ListResourceTemplates": {kind: command, list: "servers", refuse: func(_ proto.Message, f *messages.Failure) proto.Message {
		return &messages.ResourceTemplatesReply{Failures: some(f)}
	}},
	"ListPrompts": {kind: command, list: "servers", refuse: func(_ proto.Message, f *messages.Failure) proto.Message {
		return &messages.PromptsReply{Failures: some(f)}
	}},
	"ReadResource": {kind: command, server: "server", refuse: func(m proto.Message, f *messages.Failure) proto.Message {
		return &messages.ReadResourceReply{RequestId: m.(*messages.ReadResource).GetRequestId(), Outcome: f.GetOutcome(), Failure: f}
	}},
	"GetPrompt": {kind: command, server: "server", refuse: func(m proto.Message, f *messages.Failure) proto.Message {
		return &messages.GetPromptReply{RequestId: m.(*messages.GetPrompt).GetRequestId(), Outcome: f.GetOutcome(), Failure: f}
	}},
	"Complete": {kind: command, server: "server", refuse: func(m proto.Message, f *messages.Failure) proto.Message {
		return &messages.CompleteReply{RequestId: m.(*messages.Complete).GetRequestId(), Failure: f}
	}},
	"SubscribeResource":   {kind: command, server: "server", refuse: done},
	"UnsubscribeResource": {kind: command, server: "server", refuse: done},
	"Watch":               {kind: command, refuse: done}, // its events are sifted by server
	"Unwatch":             {kind: command, refuse: done},
	"HandleRequests":      {kind: command, every: true, refuse: done},
	"ServerRequestReply":  {kind: command}, // by the right to HandleRequests

	"Done":                   {kind: answer},
	"SetServersReply":        {kind: answer},
	"ReloadReply":            {kind: answer},
	"CallProgress":           {kind: answer},
	"CallToolReply":          {kind: answer},
	"StatusReply":            {kind: answer},
	"ToolsReply":             {kind: answer},
	"WatchEvent":             {kind: answer},
	"ResourcesReply":         {kind: answer},
	"ResourceTemplatesReply": {kind: answer},
	"ReadResourceReply":      {kind: answer},
	"PromptsReply":           {kind: answer},
	"GetPromptReply":         {kind: answer},
	"CompleteReply":          {kind: answer},
	"ServerRequest":          {kind: answer},
	"ServerRequestEnded":     {kind: answer},

	"ServerSpec": {}, "ServerIsolation": {}, "ServerAuth": {}, "ServerTLS": {}, "ToolList": {}, "ReloadProblem": {},
	"ToolEntry": {}, "ChangedToolInfo": {}, "LogMessage": {}, "ServerStatus": {}, "IsolationStatus": {},
	"ResourceEntry": {}, "ResourceTemplateEntry": {}, "PromptEntry": {}, "PromptArgumentEntry": {}, "Failure": {},
}

func done(_ proto.Message, f *messages.Failure) proto.Message { return &messages.Done{Failure: f} }

func some(f *messages.Failure) []*messages.Failure {
	if f == nil {
		return nil
	}
	return []*messages.Failure{f}
}

// Commands are the names of all commands that a peer can have the right to, sorted.
func Commands() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(table)), func(name string) bool {
		return table[name].kind != command || table[name].refuse == nil
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

// nameOf is the message's key in the table.
func nameOf(m proto.Message) string { return string(m.ProtoReflect().Descriptor().Name()) }

// newMessage makes an empty message that travels that way; nil for a name that has no such row.
func newMessage(full string, way kind) proto.Message {
	name, ours := strings.CutPrefix(full, prefix)
	if r, known := table[name]; !ours || !known || r.kind != way {
		return nil
	}
	t, err := protoregistry.GlobalTypes.FindMessageByName(protoreflect.FullName(full))
	if err != nil {
		return nil
	}
	return t.New().Interface()
}

// travels reports whether a name is that of a message of ours.
func travels(full string) bool {
	name, ours := strings.CutPrefix(full, prefix)
	return ours && table[name].kind != part
}

// text is a field of a message that holds one string.
func text(m proto.Message, field string) string {
	r := m.ProtoReflect()
	return r.Get(r.Descriptor().Fields().ByName(protoreflect.Name(field))).String()
}

// texts is a field of a message that holds several.
func texts(m proto.Message, field string) (all []string) {
	r := m.ProtoReflect()
	list := r.Get(r.Descriptor().Fields().ByName(protoreflect.Name(field))).List()
	for i := range list.Len() {
		all = append(all, list.Get(i).String())
	}
	return all
}

// setTexts replaces what texts reads.
func setTexts(m proto.Message, field string, all []string) {
	r := m.ProtoReflect()
	f := r.Descriptor().Fields().ByName(protoreflect.Name(field))
	r.Clear(f)
	list := r.Mutable(f).List()
	for _, v := range all {
		list.Append(protoreflect.ValueOfString(v))
	}
}
