package remote

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/mcpvisor/mcpvisor/supervisor/internal/refusal"
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
}

// isAnswered reports whether a message is a command that has a reply.
func isAnswered(name string) bool {
	return messageRules[name].kind == kindCommand && refusal.HasReply(name)
}

// messagePrefix is the protobuf package of the vocabulary.
const messagePrefix = "mcpvisor."

// messageRules has a row for each message of messages.proto; a test keeps it complete.
var messageRules = map[string]messageRule{
	"AddServer":             {kind: kindCommand, server: "name"},
	"RemoveServer":          {kind: kindCommand, server: "name"},
	"EnableServer":          {kind: kindCommand, server: "name"},
	"DisableServer":         {kind: kindCommand, server: "name"},
	"ReconnectServer":       {kind: kindCommand, server: "name"},
	"ProvideCredentials":    {kind: kindCommand, server: "server"},
	"SetServers":            {kind: kindCommand, allServers: true},
	"Reload":                {kind: kindCommand, allServers: true},
	"CallTool":              {kind: kindCommand, server: "server"},
	"GetStatus":             {kind: kindCommand, list: "names"},
	"ListTools":             {kind: kindCommand, list: "servers"},
	"ListResources":         {kind: kindCommand, list: "servers"},
	"ListResourceTemplates": {kind: kindCommand, list: "servers"},
	"ListPrompts":           {kind: kindCommand, list: "servers"},
	"ReadResource":          {kind: kindCommand, server: "server"},
	"GetPrompt":             {kind: kindCommand, server: "server"},
	"Complete":              {kind: kindCommand, server: "server"},
	"GetHistory":            {kind: kindCommand, server: "server"},
	"GetLogs":               {kind: kindCommand, server: "server"},
	"PingServer":            {kind: kindCommand, server: "server"},
	"GetPermissions":        {kind: kindCommand, allServers: true},
	"SubscribeResource":     {kind: kindCommand, server: "server"},
	"UnsubscribeResource":   {kind: kindCommand, server: "server"},
	"Watch":                 {kind: kindCommand}, // the relay filters its events by server
	"Unwatch":               {kind: kindCommand},
	"HandleRequests":        {kind: kindCommand, allServers: true},
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

// Commands returns the names of all commands that a peer can have the right to, sorted.
func Commands() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(messageRules)), func(name string) bool {
		return !isAnswered(name)
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
