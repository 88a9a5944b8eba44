package supervisor

import (
	"fmt"
	"strings"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/proto"

	"github.com/mcpvisor/mcpvisor/messages"
)

// requester gets the reply to a command: pid is the actor that sent it, nil if it wants no reply, and requestID is its own id for the
// command.
type requester struct {
	pid       *actor.PID
	requestID string
}

// requesterOf returns the sender of the message of this turn.
func requesterOf(ctx actor.Context) requester {
	to := requester{pid: ctx.Sender()}
	if m, ok := ctx.Message().(interface{ GetRequestId() string }); ok {
		to.requestID = m.GetRequestId()
	}
	return to
}

// sendReply replies to a sender. A message without a sender wants no reply.
func (e *entryActor) sendReply(to requester, reply proto.Message) {
	if to.pid != nil {
		messages.SetRequestID(reply, to.requestID)
		e.root.Send(to.pid, reply)
	}
}

// uncached returns an actor's address without the process that the library keeps with a PID. A future (RequestFuture) of which the
// process is kept takes whatever comes later for its answer, also the library's own message that it is watched. The future is
// gone once it has its reply: an actor that watches it after that by an uncached address gets Terminated.
func uncached(pid *actor.PID) *actor.PID {
	return &actor.PID{Address: pid.GetAddress(), Id: pid.GetId(), RequestId: pid.GetRequestId()}
}

// commandNames are the messages that the entry actor understands; a test holds them complete.
var commandNames = []string{"AddServer", "CallTool", "Complete", "DisableServer", "EnableServer", "GetHistory", "GetLogs",
	"GetPermissions", "GetPrompt", "GetStatus", "HandleRequests", "ListPrompts", "ListResourceTemplates", "ListResources", "ListTools",
	"PingServer", "ProvideCredentials", "ReadResource", "ReconnectServer", "Reload", "RemoveServer", "ServerRequestReply", "SetServers",
	"SubscribeResource", "UnsubscribeResource", "Unwatch", "Watch"}

// refuseUnknown tells the sender of a message that it is no command. The actor library's own messages, and Failures, get no answer:
// two managers that are given each other's addresses would answer for ever.
func (e *entryActor) refuseUnknown(ctx actor.Context) {
	switch ctx.Message().(type) {
	case actor.SystemMessage, actor.AutoReceiveMessage, *actor.DeadLetterResponse, *messages.Failure:
		return
	}
	name := fmt.Sprintf("%T", ctx.Message())
	e.sendReply(requesterOf(ctx), messages.FailureOf(&messages.Error{Op: "receive", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid,
		Text: "a manager does not understand " + messages.Line(name, 100),
		Fix:  "send a pointer to one of these, of package messages: " + strings.Join(commandNames, ", ")}))
}
