package session

import (
	"bytes"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/monotime"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/outcome"
)

// sink is the receiving side of a session, which its connection calls. It is a type of its own so that its methods are not
// part of the session's API. Nothing in it blocks, because the connection reads nothing while a method runs.
type sink Session

var (
	_ transports.Sink              = (*sink)(nil)
	_ transports.StreamReopenSink  = (*sink)(nil)
	_ transports.RequestStreamSink = (*sink)(nil)
	_ transports.DiscardSink       = (*sink)(nil)
)

// Message takes one body apart and dispatches its messages. Several messages one after the other in one body are treated like
// several bodies: a server that forgets a newline between two answers loses neither.
func (k *sink) Message(body []byte) { k.MessageOn(0, body) }

// MessageOn is Message for a body that came on the stream of the request id of ours; 0 for any other body.
func (k *sink) MessageOn(id int64, body []byte) {
	s := (*Session)(k)
	defer s.recoverPanic()
	s.lastHeard.Store(int64(monotime.Now()))
	// Some programs write a byte order mark before their output.
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	// Each round reads one value. After an invalid one the rest of the body cannot be split, so it is given up.
	for i := rawjson.SkipSpace(body, 0); i < len(body); i = rawjson.SkipSpace(body, i) {
		switch body[i] {
		case '{':
			e, end := jsonrpc.ScanEnvelope(body, i, 0)
			if end < 0 {
				s.handleInvalidJSON(body[i:])
				return
			}
			s.dispatchMessage(&e, body[i:end], id)
			i = end
		case '[':
			if i = s.readBatch(body, i, id); i < 0 {
				return
			}
		default:
			s.countNoise(body[i:])
			return
		}
	}
}

// readBatch dispatches the messages of a batch and returns the index after it, -1 if the JSON is broken. 2025-03-26: "MCP
// implementations MAY support sending JSON-RPC batches, but MUST support receiving JSON-RPC batches." Requests in it are
// answered one by one. Later versions have no batches; receiving one there does no harm.
func (s *Session) readBatch(body []byte, i int, streamID int64) (end int) {
	elements := rawjson.ArrayAt(body, i, 0)
	empty := true
	for elements.Next() {
		empty = false
		start := elements.Position()
		// An element that is no object is noise, and the batch goes on behind it.
		if start >= len(body) || body[start] != '{' {
			if elements.Skip() != nil {
				s.countNoise(body[start:elements.Position()])
			}
			continue
		}
		e, end := jsonrpc.ScanEnvelope(body, start, 1)
		if elements.MoveTo(end); end < 0 {
			s.handleInvalidJSON(body[start:])
			return -1
		}
		s.dispatchMessage(&e, body[start:end], streamID)
	}
	// An empty batch is invalid in JSON-RPC.
	if end = elements.End(); end < 0 || empty {
		s.countNoise(body[i:])
	}
	return end
}

// dispatchMessage acts on one message, which came on the stream of the request streamID of ours, 0 if that is not known.
// Messages that the session did not ask for are charged to the server's share first.
func (s *Session) dispatchMessage(e *jsonrpc.Envelope, whole []byte, streamID int64) {
	switch e.Classify() {
	case jsonrpc.KindAnswer:
		s.handleAnswer(e)
	case jsonrpc.KindRequest:
		s.chargeUnasked(askPrice, len(whole))
		s.handleRequest(e, streamID)
	case jsonrpc.KindNotification:
		price := noticePrice
		if string(e.Method) == "notifications/message" {
			price = logPrice
		}
		s.chargeUnasked(price, len(whole))
		s.handleNotification(e, streamID)
	default:
		s.countNoise(whole)
	}
}

// handleAnswer gives an answer to the caller that waits for it. An unknown, duplicate or late answer is counted and dropped.
//
// 2025-11-25: "The sender of the cancellation notification SHOULD ignore any response to the request that arrives afterward."
func (s *Session) handleAnswer(e *jsonrpc.Envelope) {
	f, ok := s.takePending(e.ID)
	if !ok && rawjson.IsNull(e.RawID) && e.ErrorObject != nil {
		// JSON-RPC: "If there was an error in detecting the id in the Request object (e.g. Parse error/Invalid Request), it
		// MUST be Null." Such an error can belong to any request. During the handshake there is only one.
		f, ok = s.takeHandshakeRequest()
	}
	if !ok {
		// A late answer shows that the server works on the abandoned request no more.
		s.counts.unmatched.Add(1)
		s.chargeUnasked(noticePrice, len(e.Result)+len(e.ErrorObject))
		s.mu.Lock()
		s.forgetAbandoned(e.ID)
		s.mu.Unlock()
		return
	}
	// The channel has room: takePending gave this goroutine the only right to send.
	switch {
	case e.ErrorObject != nil && e.Result != nil:
		f.answer <- outcome.Answer{Kind: outcome.AnswerUnusable, Detail: "is a result and an error at once"}
	case e.ErrorObject != nil:
		f.answer <- outcome.Answer{Kind: outcome.AnswerRPCError, Raw: e.ErrorObject}
	case rawjson.IsObject(e.Result):
		f.answer <- outcome.Answer{Kind: outcome.AnswerResult, Raw: e.Result, IsError: e.IsError, Detail: string(e.ResultType)}
	case e.Result != nil:
		f.answer <- outcome.Answer{Kind: outcome.AnswerUnusable, Detail: "is not a JSON object", ToolRan: true}
	default:
		f.answer <- outcome.Answer{Kind: outcome.AnswerUnusable, Detail: "holds neither a result nor an error"}
	}
}

// takeHandshakeRequest removes the only pending request, before the handshake is done; afterwards none.
func (s *Session) takeHandshakeRequest() (*pendingRequest, bool) {
	if s.info.Load() != nil {
		return nil, false
	}
	return s.takeOnlyPending()
}

// handleNotification acts on a notification. It ignores unknown methods, and notifications of subscriptions that are not
// ours.
func (s *Session) handleNotification(e *jsonrpc.Envelope, streamID int64) {
	switch string(e.Method) {
	case "notifications/tools/list_changed":
		if s.isOurNotification(e.Params) {
			s.notifyToolsChanged()
		}
	case "notifications/prompts/list_changed":
		if s.isOurNotification(e.Params) {
			s.notifyPromptsChanged()
		}
	case "notifications/resources/list_changed":
		if s.isOurNotification(e.Params) {
			s.notifyResourcesChanged()
		}
	case "notifications/resources/updated":
		if uri, _ := rawjson.Text(rawjson.Member(e.Params, "uri")); s.isOurNotification(e.Params) {
			s.notifyResourceUpdated(uri)
		}
	case "notifications/subscriptions/acknowledged":
		s.handleAcknowledged(e.Params)
	case "notifications/progress":
		if rawjson.IsObject(e.Params) {
			s.handleProgress(e.Params)
		}
	case "notifications/tasks/status", "notifications/tasks":
		s.handleTaskStatus(e.Params)
	case "notifications/cancelled":
		s.handleCancelled(e.Params)
	case "notifications/elicitation/complete":
		s.handleElicitComplete(e.Params)
	// Log messages are dropped here if the owner does not want them: the queue would only fill.
	case "notifications/message":
		if !rawjson.IsObject(e.Params) {
			return
		}
		caller, ctx := s.logCaller(streamID, e.Params)
		if s.cfg.OnLog == nil && caller == nil {
			return
		}
		params := bytes.Clone(e.Params) // without the clone the whole body would stay in memory until the callback has run
		s.callbacks.Put(len(params), false, func() {
			if caller != nil {
				caller.Log(ctx, params)
			}
			if s.cfg.OnLog != nil {
				s.deliverLog(params)
			}
		})
	}
}

// isOurNotification reports whether a notification belongs to one of our streams, or names none.
func (s *Session) isOurNotification(params []byte) bool {
	ours := s.modern.Load() == nil || s.streams.OwnsNotification(params)
	if !ours {
		s.counts.unmatched.Add(1)
	}
	return ours
}

// notifyToolsChanged schedules OnToolsChanged. The session keeps no cache of the tools: their owner lists them again.
func (s *Session) notifyToolsChanged() {
	s.notifications.tools.Schedule(&s.callbacks, s.cfg.OnToolsChanged)
}

// notifyPromptsChanged drops the cached prompts before it schedules the callback, so that a list that the callback
// asks for is a new one.
func (s *Session) notifyPromptsChanged() {
	s.listCaches.Load().invalidateLists(false, true)
	s.notifications.prompts.Schedule(&s.callbacks, s.cfg.OnPromptsChanged)
}

// notifyResourcesChanged does the same for resources and templates: the protocol has one notification for both.
func (s *Session) notifyResourcesChanged() {
	s.listCaches.Load().invalidateLists(true, false)
	s.notifications.resources.Schedule(&s.callbacks, s.cfg.OnResourcesChanged)
}

// deliverLog decodes one log message and calls OnLog. It runs on the queue callbacks, so that decoding does not hold up the
// reader.
func (s *Session) deliverLog(params []byte) {
	var level, logger string
	var data []byte
	m := rawjson.ObjectAt(params, 0, 0)
	for m.Next() {
		value := m.Skip()
		switch string(m.Name) {
		case "level":
			level, _ = rawjson.Text(value)
		case "logger":
			logger, _ = rawjson.Text(value)
		case "data":
			data = value
		}
	}
	s.cfg.OnLog(level, logger, data)
}

// Down ends the session: the connection calls it once, as its last call, with the reason for its end. A second call has no effect.
func (k *sink) Down(err error) {
	s := (*Session)(k)
	if err != nil {
		err = readableError(err)
	}
	s.endSession(outcome.TranslateError("connect", err))
	s.mu.Lock()
	first := !s.connEnded
	s.connEnded = true
	ready := s.conn != nil
	s.mu.Unlock()
	if first && ready { // otherwise Dial does it
		s.releaseWhenDone()
	}
}
