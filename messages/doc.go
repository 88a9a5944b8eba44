// Package messages is the vocabulary that every part of mcpvisor shares: the words for a server's phase, the
// description of a server ([Spec]), the published state of it ([Status]), the one error type with its outcomes, tool
// names, events, and the protobuf commands and replies that other actors send and receive.
//
// # How it fits
//
// Every other package imports this one. A Go program uses the plain Go types ([Spec], [Status], [Tool], [Error],
// [Event]). Between actors, on one machine or several, the protobuf types in messages.pb.go travel; the files
// convert*.go are the only place that turns one into the other. The types are values or immutable, and the package owns no state.
//
// # Who sends what to whom
//
// Any actor sends commands to a manager's actor (supervisor.Manager.PID, supervisor.Props, remote.PID), and gets one reply to each,
// under the request_id of the command. A reply with a failure says that the command had no effect, except where its outcome says more.
//
//	command                                reply
//	AddServer, RemoveServer                Done
//	EnableServer, DisableServer            Done
//	ReconnectServer, ProvideCredentials    Done
//	SetServers                             SetServersReply
//	Reload                                 ReloadReply
//	CallTool                               CallProgress, if asked for; then CallToolReply, under the call_id
//	Complete                               CompleteReply
//	ReadResource                           ReadResourceReply
//	GetPrompt                              GetPromptReply
//	ListTools                              ToolsReply
//	ListResources                          ResourcesReply
//	ListResourceTemplates                  ResourceTemplatesReply
//	ListPrompts                            PromptsReply
//	GetStatus                              StatusReply
//	GetHistory                             HistoryReply
//	GetLogs                                LogsReply
//	GetPermissions                         PermissionsReply
//	PingServer                             PingReply
//	SubscribeResource                      Done; then WatchEvents to those who watch
//	UnsubscribeResource                    Done
//	Watch                                  Done; then WatchEvents, until Unwatch
//	Unwatch                                Done
//	HandleRequests                         Done; then ServerRequests, until another HandleRequests
//	anything else                          Failure
//
// Watch tells of what happens from then on: who must also know how servers fare already sends GetStatus after it.
//
// A manager asks in one case: it sends a ServerRequest to the actor that handles its kind, which answers with ServerRequestReply; a
// ServerRequestEnded says that no answer is needed any more. A PoisonPill closes the manager. Everything else of the protobuf types is
// part of these, or of the control socket alone. Each part has a Go form, with methods ToProto and, on the protobuf type, To and its
// name: Status, Event, Tool, Resource, Prompt, Spec, Error (FailureOf, ToError), Progress, LogEntry, Completion, SetServersResult.
//
// The package imports no other package of this module and no actor library, so that a program that only sends messages
// depends on protobuf alone.
package messages
