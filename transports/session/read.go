package session

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/definitions"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/outcome"
)

// ReadResource reads one resource and returns the server's result object, byte for byte. It asks the server each time: the
// result says for how long it is fresh (ttlMs, 2026-07-28), but a client only "MAY" rely on that, the caller wants the
// present content, and a cache would hold everything that was ever read.
//
// An error is a *messages.Error with Op "read" and an Outcome; it wraps messages.ErrUnknownResource if the server says that
// there is no such resource.
func (s *Session) ReadResource(ctx context.Context, uri string, o *Options) (json.RawMessage, error) {
	if e := s.checkReadRequest("resources/read", "URI of the resource", uri); e != nil {
		return nil, e
	}
	if problem := o.metaProblem(); problem != "" {
		return nil, invalidReadError(problem)
	}
	raw, e := s.requestResult(ctx, "read", request{
		method: "resources/read", name: uri, fields: jsonrpc.AppendString([]byte(`"uri":`), uri), opts: o,
	})
	if e == nil {
		return raw, nil
	}
	// 2026-07-28, Resources: "If the requested resource does not exist, servers MUST return a JSON-RPC error with code -32602
	// (Invalid Params)." And: "For backwards compatibility, clients SHOULD also accept -32002 as a resource not found error,
	// as earlier protocol versions used this code." The request has no other member that could be invalid.
	if e.Outcome == messages.OutcomeRejected && (e.Code == jsonrpc.CodeInvalidParams || e.Code == jsonrpc.CodeResourceNotFoundOld) {
		e.Err = joinCause(messages.ErrUnknownResource, e.Err)
	}
	return nil, e
}

// GetPrompt fills a prompt with arguments and returns the server's result object, byte for byte.
//
// An error is a *messages.Error with Op "read" and an Outcome; it wraps messages.ErrUnknownPrompt if the server says that
// there is no such prompt.
func (s *Session) GetPrompt(ctx context.Context, name string, args map[string]string, o *Options) (json.RawMessage, error) {
	if e := s.checkReadRequest("prompts/get", "name of the prompt", name); e != nil {
		return nil, e
	}
	problem := o.metaProblem()
	if problem == "" {
		problem = argumentsProblem(args)
	}
	if problem != "" {
		return nil, invalidReadError(problem)
	}
	fields := jsonrpc.AppendString([]byte(`"name":`), name)
	if len(args) > 0 {
		fields = appendTexts(append(fields, `,"arguments":`...), args)
	}
	raw, e := s.requestResult(ctx, "read", request{method: "prompts/get", name: name, fields: fields, opts: o})
	if e == nil {
		return raw, nil
	}
	// Only the server's own refusal can say that there is no such prompt.
	if e.Outcome == messages.OutcomeRejected && namesNoPrompt(e, name) {
		e.Err = joinCause(messages.ErrUnknownPrompt, e.Err)
	}
	return nil, e
}

// namesNoPrompt reports whether a refusal says that there is no such prompt. The code alone does not: 2025-11-25, Prompts,
// has -32602 for an "Invalid prompt name" and for "Missing required arguments". So the server's words decide; some servers
// give no code at all.
func namesNoPrompt(e *messages.Error, name string) bool {
	if e.Code != jsonrpc.CodeInvalidParams && e.Code != 0 {
		return false
	}
	// The method's own name contains "prompt", and the prompt's name may contain "argument": neither may decide.
	text := strings.ToLower(strings.ReplaceAll(e.Text, "prompts/get", ""))
	if !strings.Contains(text, "prompt") || strings.Contains(strings.ReplaceAll(text, strings.ToLower(name), ""), "argument") {
		return false
	}
	for _, words := range []string{"not found", "unknown", "no such", "no prompt", "not exist", "n't exist", "invalid prompt"} {
		if strings.Contains(text, words) {
			return true
		}
	}
	return false
}

// Forward sends a request as another client wrote it: method, the name that its headers repeat, and the other members of its params
// without _meta, as JSON without braces. It returns the server's result object, byte for byte. A server that does not declare what is
// asked for is not asked.
//
// An error is a *messages.Error with Op "read" and an Outcome.
func (s *Session) Forward(ctx context.Context, method, name string, fields json.RawMessage, o *Options) (json.RawMessage, error) {
	if problem := o.metaProblem(); problem != "" {
		return nil, invalidReadError(problem)
	}
	if info := s.info.Load(); info != nil {
		if capability, declared := s.declares(info, method); !declared {
			return nil, undeclaredError(capability)
		}
	}
	defer s.awaitLogs(ctx)
	raw, e := s.requestResult(ctx, "read", request{method: method, name: name, fields: fields, opts: o})
	if e != nil {
		return nil, e
	}
	return raw, nil
}

// declares reports whether the server declares what a method needs, and which capability that is.
func (s *Session) declares(info *Info, method string) (capability string, declared bool) {
	switch c := &info.Capabilities; {
	case strings.HasPrefix(method, "prompts/"):
		return "prompts", c.Prompts
	case method == "resources/subscribe":
		return "resources.subscribe", c.ResourcesSubscribe
	case strings.HasPrefix(method, "resources/"):
		return "resources", c.Resources
	case method == "completion/complete":
		// Versions before 2025-03-26 have completion, but no capability that declares it.
		return "completions", c.Completions || info.ProtocolVersion < "2025-03-26"
	}
	return "", true
}

// SetLogLevel asks a server of the legacy era for log messages of a level and above. In the modern era each request says it. posted, if it is
// not nil, is called once, without waiting for the server: what is sent after it comes after the request, if the connection is one that takes
// messages without waiting until they are written, as that of a child process.
func (s *Session) SetLogLevel(ctx context.Context, level string, posted func()) error {
	if posted != nil {
		posted = sync.OnceFunc(posted)
		defer posted()
	}
	if info := s.info.Load(); s.modern.Load() != nil || info == nil || !info.Capabilities.Logging {
		return nil
	}
	_, e := s.requestResult(ctx, "read", request{method: "logging/setLevel", fields: jsonrpc.AppendString([]byte(`"level":`), level), posted: posted})
	if e != nil {
		return e
	}
	return nil
}

// maxCompletions bounds the proposals that are kept. 2025-11-25, Completion: "Maximum 100 items per response".
const maxCompletions = 100

// Complete asks the server for proposals for the value of an argument, and keeps at most 100 of them (HasMore says that there
// were more).
//
// An error is a *messages.Error with Op "read" and an Outcome.
func (s *Session) Complete(ctx context.Context, r messages.CompleteRequest) (messages.Completion, error) {
	// The prompt or the template is checked like the subject of any other read.
	what, subject := "prompt", r.Prompt
	if r.URITemplate != "" {
		what, subject = "URI template", r.URITemplate
	}
	if e := s.checkReadRequest("completion/complete", what, subject); e != nil {
		return messages.Completion{}, e
	}
	switch problem := argumentsProblem(r.Context); {
	case r.Prompt != "" && r.URITemplate != "":
		return messages.Completion{}, invalidReadError("an argument is completed of a prompt or of a URI template, not of both")
	case r.Argument == "":
		return messages.Completion{}, invalidReadError("the argument to complete has no name")
	case !utf8.ValidString(r.Argument) || !utf8.ValidString(r.Value):
		return messages.Completion{}, invalidReadError("the argument to complete is not valid UTF-8")
	case problem != "":
		return messages.Completion{}, invalidReadError(problem)
	}
	raw, e := s.requestResult(ctx, "read", request{method: "completion/complete", fields: appendCompletion(nil, r)})
	if e != nil {
		return messages.Completion{}, e
	}
	c, ok := readCompletion(rawjson.Member(raw, "completion"))
	if !ok {
		return messages.Completion{}, &messages.Error{
			Op: "read", Outcome: messages.OutcomeUnknown, Class: messages.ClassProtocol,
			Text: "the server's answer to completion/complete holds no values",
		}
	}
	return c, nil
}

// appendCompletion appends the params of completion/complete, without braces.
func appendCompletion(b []byte, r messages.CompleteRequest) []byte {
	if r.Prompt != "" {
		b = jsonrpc.AppendString(append(b, `"ref":{"type":"ref/prompt","name":`...), r.Prompt)
	} else {
		b = jsonrpc.AppendString(append(b, `"ref":{"type":"ref/resource","uri":`...), r.URITemplate)
	}
	b = jsonrpc.AppendString(append(b, `},"argument":{"name":`...), r.Argument)
	b = append(jsonrpc.AppendString(append(b, `,"value":`...), r.Value), '}')
	if len(r.Context) > 0 {
		b = append(appendTexts(append(b, `,"context":{"arguments":`...), r.Context), '}')
	}
	return b
}

// readCompletion reads the member completion of the result. ok is false if it holds no array of values; single values of a
// wrong type are dropped.
func readCompletion(raw []byte) (c messages.Completion, ok bool) {
	values := rawjson.Member(raw, "values")
	if !rawjson.IsArray(values) {
		return c, false
	}
	c.Values = []string{}
	list := rawjson.ArrayAt(values, 0, 0)
	for list.Next() {
		text, isText := rawjson.Text(list.Skip())
		switch {
		case !isText:
		case len(c.Values) == maxCompletions:
			c.HasMore = true
		default:
			c.Values = append(c.Values, text)
		}
	}
	if n := jsonrpc.SizeOf(rawjson.Member(raw, "total")); n != nil && *n < 1<<31 {
		c.Total = int(*n)
	}
	c.HasMore = c.HasMore || jsonrpc.IsTrue(rawjson.Member(raw, "hasMore"))
	return c, true
}

// checkReadRequest returns the error of a request that cannot be sent, nil if it can: because the session has ended, subject
// (described by what) is not usable, or the server does not declare what the method needs. Every error is not-sent.
//
// 2025-11-25, Operation: "Both parties MUST: … Only use capabilities that were successfully negotiated".
func (s *Session) checkReadRequest(method, what, subject string) *messages.Error {
	if e := s.endedError("read"); e != nil {
		return outcome.MarkNotSent(e)
	}
	info := s.info.Load()
	switch {
	case info == nil:
		return invalidReadError("the server was asked before the handshake")
	case subject == "":
		return invalidReadError("the " + what + " is empty")
	case !utf8.ValidString(subject):
		return invalidReadError("the " + what + " is not valid UTF-8")
	case len(subject) > definitions.MaxURI:
		return invalidReadError("the " + what + " is longer than " + strconv.Itoa(definitions.MaxURI) + " bytes")
	}
	if capability, declared := s.declares(info, method); !declared {
		return undeclaredError(capability)
	}
	return nil
}

// undeclaredError is the error of a request for which the server lacks the capability.
func undeclaredError(capability string) *messages.Error {
	return invalidReadError("the server does not declare the capability " + capability)
}

// argumentsProblem returns the reason for which args cannot be written as JSON, "" if they can.
func argumentsProblem(args map[string]string) string {
	for name, value := range args {
		if !utf8.ValidString(name) || !utf8.ValidString(value) {
			return "the argument " + messages.Line(name, 60) + " is not valid UTF-8"
		}
	}
	return ""
}

// appendTexts appends an object of strings, in the order of its keys, so that equal arguments give equal requests.
func appendTexts(b []byte, texts map[string]string) []byte {
	b = append(b, '{')
	empty := len(b)
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		b = append(jsonrpc.AppendString(jsonrpc.AppendComma(b, empty), name), ':')
		b = jsonrpc.AppendString(b, texts[name])
	}
	return append(b, '}')
}

// joinCause returns an error that is both meaning, which callers test for, and cause, which may be nil.
func joinCause(meaning, cause error) error {
	if cause == nil {
		return meaning
	}
	return errors.Join(meaning, cause)
}

// invalidReadError returns the error of a read that cannot be sent; it is not-sent.
func invalidReadError(text string) *messages.Error {
	return &messages.Error{Op: "read", Outcome: messages.OutcomeNotSent, Class: messages.ClassInvalid, Text: text}
}
