package session

import (
	"context"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/subscriptions"
	"time"
)

// startBackground begins the work that is independent of callers' requests, once the handshake is done: the
// subscription to list changes in the modern era, the log level in the legacy one.
func (s *Session) startBackground() {
	c := &s.info.Load().Capabilities
	if s.modern.Load() != nil {
		s.listenToLists(c)
		return
	}
	if level := s.cfg.LogLevel; level != "" && c.Logging {
		s.spawn(func() { s.setLogLevel(level) })
	}
}

// listenToLists opens the stream on which a server of the modern era announces changes of its lists, as far as it
// declares that it does. Changes of the tools matter only if the owner wants to know; the other lists are cached
// here, so their changes always matter.
func (s *Session) listenToLists(c *Capabilities) {
	filter := subscriptions.Filter{
		Tools:   c.ToolsListChanged && s.cfg.OnToolsChanged != nil,
		Prompts: c.PromptsListChanged, Resources: c.ResourcesListChanged,
	}
	if filter.Tools || filter.Prompts || filter.Resources {
		s.streams.NewStream(filter).Open(true)
	}
}

// ownRequestTimeout bounds a request that the session makes on its own account.
const ownRequestTimeout = 30 * time.Second

// setLogLevel asks for log messages. In the modern era every request carries the level instead (metaLogLevel).
//
// 2025-11-25, Logging: "To configure the minimum log level, clients MAY send a logging/setLevel request". A server
// that refuses chooses its level itself, so the error is of no interest.
func (s *Session) setLogLevel(level string) {
	ctx, stop := context.WithTimeout(s.lifetime, ownRequestTimeout)
	defer stop()
	_, _ = s.requestResult(ctx, "read", request{method: "logging/setLevel", fields: jsonrpc.AppendString([]byte(`"level":`), level)})
}
