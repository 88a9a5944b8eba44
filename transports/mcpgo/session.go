package mcpgo

import (
	"context"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// session is one connection as mcp-go sees it. mcp-go's goroutines and the connection's call it concurrently.
type session struct {
	// id is unique in the program. done is closed at the end of the connection.
	id   string
	done <-chan struct{}

	// mcp-go drops a notification for which its channel has no room. So every sender first takes a slot, and there are as many
	// slots as the channel has room.
	notifications chan mcp.JSONRPCNotification
	slots         chan struct{}

	initialized   atomic.Bool
	requests      clientRequests
	subscriptions subscriptions

	// mu guards everything below.
	mu           sync.Mutex
	level        mcp.LoggingLevel
	client       mcp.Implementation
	capabilities mcp.ClientCapabilities
	version      string
	tools        map[string]server.ServerTool
}

var (
	_ server.SessionWithLogging         = (*session)(nil)
	_ server.SessionWithClientInfo      = (*session)(nil)
	_ server.SessionWithTools           = (*session)(nil)
	_ server.SessionWithProtocolVersion = (*session)(nil)
)

// maxWaiting bounds the notifications that wait to be written. Their senders block beyond that.
const maxWaiting = 16

// sessionNumbers makes session ids unique in the program, because mcp-go refuses to register one id twice.
var sessionNumbers atomic.Int64

// newSession makes the session of a connection that ends with ctx.
func newSession(ctx context.Context, peer inprocess.Peer) *session {
	return &session{
		id:            "mcpvisor-" + strconv.FormatInt(sessionNumbers.Add(1), 10),
		done:          ctx.Done(),
		notifications: make(chan mcp.JSONRPCNotification, maxWaiting),
		slots:         make(chan struct{}, maxWaiting),
		// A client gets only errors until it asks for more, which is mcp-go's own default.
		level: mcp.LoggingLevelError,

		requests: clientRequests{peer: peer, done: ctx.Done()},
	}
}

// SessionID implements server.ClientSession.
func (s *session) SessionID() string { return s.id }

// NotificationChannel implements server.ClientSession. mcp-go calls it once for every notification, right before it sends; it
// blocks until there is a slot. After the end it returns nil, and mcp-go drops the notification.
func (s *session) NotificationChannel() chan<- mcp.JSONRPCNotification {
	select {
	// forwardNotifications gives the slot back when it has taken the notification.
	case s.slots <- struct{}{}:
		return s.notifications
	case <-s.done:
		return nil
	}
}

// Initialize implements server.ClientSession.
func (s *session) Initialize() { s.initialized.Store(true) }

// Initialized implements server.ClientSession.
func (s *session) Initialized() bool { return s.initialized.Load() }

// SetLogLevel implements server.SessionWithLogging.
func (s *session) SetLogLevel(level mcp.LoggingLevel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.level = level
}

// GetLogLevel implements server.SessionWithLogging.
func (s *session) GetLogLevel() mcp.LoggingLevel {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.level
}

// SetClientInfo implements server.SessionWithClientInfo.
func (s *session) SetClientInfo(client mcp.Implementation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client = client
}

// GetClientInfo implements server.SessionWithClientInfo.
func (s *session) GetClientInfo() mcp.Implementation {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

// SetClientCapabilities implements server.SessionWithClientInfo.
func (s *session) SetClientCapabilities(capabilities mcp.ClientCapabilities) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.capabilities = capabilities
}

// GetClientCapabilities implements server.SessionWithClientInfo.
func (s *session) GetClientCapabilities() mcp.ClientCapabilities {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.capabilities
}

// SetProtocolVersion is called by mcp-go when the handshake has agreed on a version.
func (s *session) SetProtocolVersion(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version = version
}

// ProtocolVersion implements server.SessionWithProtocolVersion.
func (s *session) ProtocolVersion() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// SetSessionTools implements server.SessionWithTools.
func (s *session) SetSessionTools(tools map[string]server.ServerTool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	// mcp-go and the embedding program may change their maps afterwards.
	s.tools = maps.Clone(tools)
}

// GetSessionTools implements server.SessionWithTools.
func (s *session) GetSessionTools() map[string]server.ServerTool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.tools)
}
