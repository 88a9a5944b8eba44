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
	// reply is the message that answers the command, which can hold a failure; nil: the command has no reply.
	reply proto.Message
}

// messagePrefix is the protobuf package of the vocabulary.
const messagePrefix = "mcpvisor."

// messageRules has a row for each message of messages.proto; a test keeps it complete.
var messageRules = map[string]messageRule{
	"AddServer":             {kind: kindCommand, server: "name", reply: &messages.Done{}},
	"RemoveServer":          {kind: kindCommand, server: "name", reply: &messages.Done{}},
	"EnableServer":          {kind: kindCommand, server: "name", reply: &messages.Done{}},
	"DisableServer":         {kind: kindCommand, server: "name", reply: &messages.Done{}},
	"ReconnectServer":       {kind: kindCommand, server: "name", reply: &messages.Done{}},
	"ProvideCredentials":    {kind: kindCommand, server: "server", reply: &messages.Done{}},
	"SetServers":            {kind: kindCommand, allServers: true, reply: &messages.SetServersReply{}},
	"Reload":                {kind: kindCommand, allServers: true, reply: &messages.ReloadReply{}},
	"CallTool":              {kind: kindCommand, server: "server", reply: &messages.CallToolReply{}},
	"GetStatus":             {kind: kindCommand, list: "names", reply: &messages.StatusReply{}},
	"ListTools":             {kind: kindCommand, list: "servers", reply: &messages.ToolsReply{}},
	"ListResources":         {kind: kindCommand, list: "servers", reply: &messages.ResourcesReply{}},
	"ListResourceTemplates": {kind: kindCommand, list: "servers", reply: &messages.ResourceTemplatesReply{}},
	"ListPrompts":           {kind: kindCommand, list: "servers", reply: &messages.PromptsReply{}},
	"ReadResource":          {kind: kindCommand, server: "server", reply: &messages.ReadResourceReply{}},
	"GetPrompt":             {kind: kindCommand, server: "server", reply: &messages.GetPromptReply{}},
	"Complete":              {kind: kindCommand, server: "server", reply: &messages.CompleteReply{}},
	"GetHistory":            {kind: kindCommand, server: "server", reply: &messages.HistoryReply{}},
	"GetLogs":               {kind: kindCommand, server: "server", reply: &messages.LogsReply{}},
	"PingServer":            {kind: kindCommand, server: "server", reply: &messages.PingReply{}},
	"GetPermissions":        {kind: kindCommand, allServers: true, reply: &messages.PermissionsReply{}},
	"SubscribeResource":     {kind: kindCommand, server: "server", reply: &messages.Done{}},
	"UnsubscribeResource":   {kind: kindCommand, server: "server", reply: &messages.Done{}},
	"Watch":                 {kind: kindCommand, reply: &messages.Done{}}, // the relay filters its events by server
	"Unwatch":               {kind: kindCommand, reply: &messages.Done{}},
	"HandleRequests":        {kind: kindCommand, allServers: true, reply: &messages.Done{}},
	"ServerRequestReply":    {kind: kindCommand}, // allowed to a peer that was asked, which needs the right to HandleRequests

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

// failureReplyTo returns the reply to a command that ended with err, nil for success, under the command's own ids.
func failureReplyTo(command proto.Message, err error) proto.Message {
	reply := messageRules[messageName(command)].reply.ProtoReflect().New()
	fields := reply.Descriptor().Fields()
	if failure := messages.FailureOf(err); failure != nil {
		if one := fields.ByName("failure"); one != nil {
			reply.Set(one, protoreflect.ValueOfMessage(failure.ProtoReflect()))
		} else {
			reply.Mutable(fields.ByName("failures")).List().Append(protoreflect.ValueOfMessage(failure.ProtoReflect()))
		}
		if outcome := fields.ByName("outcome"); outcome != nil {
			reply.Set(outcome, protoreflect.ValueOfString(failure.GetOutcome()))
		}
	}
	asked := command.ProtoReflect()
	for _, id := range []protoreflect.Name{"request_id", "call_id"} {
		if to, from := fields.ByName(id), asked.Descriptor().Fields().ByName(id); to != nil && from != nil {
			reply.Set(to, asked.Get(from))
		}
	}
	return reply.Interface()
}

// Commands returns the names of all commands that a peer can have the right to, sorted.
func Commands() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(messageRules)), func(name string) bool {
		return messageRules[name].kind != kindCommand || messageRules[name].reply == nil
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
