package session

import (
	"context"
	"time"
)

// startBackground begins what goes on beside the requests of callers, once the handshake is done.
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

// listenToLists opens the stream on which a server of the modern era tells that its lists changed, as far as it declares
// that it does.
func (s *Session) listenToLists(c *Capabilities) {
	st := s.newStream()
	st.tools = c.ToolsListChanged && s.cfg.OnToolsChanged != nil
	st.prompts, st.resources = c.PromptsListChanged, c.ResourcesListChanged
	if st.tools || st.prompts || st.resources {
		st.open(true)
	}
}

// ownRequestTimeout is how long a request may take that the session makes on its own account.
const ownRequestTimeout = 30 * time.Second

// setLogLevel asks for log messages. In the modern era every request carries the level instead (metaLogLevel).
//
// 2025-11-25, Logging: "To configure the minimum log level, clients MAY send a logging/setLevel request". A server that
// refuses sends what it likes.
func (s *Session) setLogLevel(level string) {
	ctx, stop := context.WithTimeout(s.lifetime, ownRequestTimeout)
	defer stop()
	_, _ = s.requestResult(ctx, "read", request{method: "logging/setLevel", fields: appendString([]byte(`"level":`), level)})
}
