package remote

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/eventstream"
	protoremote "github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/mcpvisor/mcpvisor/messages"
)

// maxControl bounds the answers of an address on a stream that this side opened, in bytes: only the library's
// greeting and farewell come there.
const maxControl = 64 << 10

// peerTransport is protoactor's remote, with every frame of a peer measured, checked and delivered by this package.
// The library sees only the greetings of peers, and the end of actors that this side watches.
type peerTransport struct {
	cfg            Config
	system         *actor.ActorSystem
	remote         *protoremote.Remote
	authorizerID   string // the id of the peerAuthorizer; empty on the side of Join
	registry       *addressRegistry
	sendLimiter    *sendLimiter
	connLimiter    *connLimiter
	endpointEvents *eventstream.Subscription
	ready          chan struct{} // closed when the peerAuthorizer can be reached
	closed         chan struct{} // closed when the transport closes
	dropped        atomic.Int64  // messages of peers, and replies to them, that were dropped
}

// newPeerTransport prepares protoactor's remote for the system. authorizerID is the id of the only actor that peers
// may name; it is empty on the side of Join, where a manager that was asked may answer any actor.
func newPeerTransport(system *actor.ActorSystem, cfg Config, authorizerID string) *peerTransport {
	w := &peerTransport{cfg: cfg, system: system, authorizerID: authorizerID, sendLimiter: newSendLimiter(), connLimiter: newConnLimiter(),
		ready: make(chan struct{}), closed: make(chan struct{})}
	w.registry = newAddressRegistry(w.handleUnbound)
	return w
}

// listen starts to listen and admits peers. An error says why the address cannot be used.
func (w *peerTransport) listen() (err error) {
	// The library panics when it cannot listen.
	defer func() {
		if r := recover(); r != nil {
			w.system.EventStream.Unsubscribe(w.endpointEvents)
			err = &messages.Error{Op: "remote", Class: messages.ClassInvalid,
				Text: fmt.Sprintf("cannot listen on %s: %v", w.cfg.listenAddress(), r), Fix: "choose another host or port"}
		}
	}()
	// grpc closes the connection at a larger frame, before this package sees it.
	frame := w.cfg.MaxMessage + frameSlack
	config := protoremote.Configure(w.cfg.Host, w.cfg.Port,
		protoremote.WithServerOptions(
			grpc.Creds(serverCredentials{credentials.NewTLS(w.cfg.serverTLS()), w.connLimiter}),
			grpc.ForceServerCodecV2(newCodec()),
			grpc.WaitForHandlers(true),
			grpc.MaxRecvMsgSize(frame),
			grpc.MaxConcurrentStreams(1), // the library opens one on each connection
			grpc.MaxHeaderListSize(16<<10),
			grpc.ConnectionTimeout(handshakeTime),
			grpc.KeepaliveParams(keepalive.ServerParameters{Time: w.cfg.keepaliveParams.Time, Timeout: w.cfg.keepaliveParams.Timeout}),
			grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: w.cfg.keepaliveParams.Time / 2, PermitWithoutStream: true}),
			grpc.ChainStreamInterceptor(w.serveStream),
			grpc.ChainUnaryInterceptor(refuseUnary),
		),
		protoremote.WithDialOptions(
			grpc.WithTransportCredentials(clientCredentials{credentials.NewTLS(w.cfg.clientTLS()), w.checkDialled}),
			grpc.WithChainStreamInterceptor(w.openStream),
			grpc.WithKeepaliveParams(w.cfg.keepaliveParams),
			grpc.WithNoProxy(), // a proxy would answer for the address instead of the peer that was probed
		),
		protoremote.WithCallOptions(grpc.MaxCallSendMsgSize(frame), grpc.MaxCallRecvMsgSize(maxControl)),
		protoremote.WithEndpointWriterQueueSize(256), // the queue grows; the library's own size takes 16 MB for each address
		protoremote.WithAdvertisedHost(w.cfg.AdvertisedHost),
	)
	config.MaxRetryCount = 1 // a larger count leaks goroutines for every peer that cannot be reached
	w.remote = protoremote.NewRemote(w.system, config)
	w.endpointEvents = w.system.EventStream.Subscribe(w.endpointEnded)
	w.remote.Start()
	return nil
}

// close stops listening and waits for the readers. The library's own order tells its readers to stop while they read,
// which is a data race: so the connections end first, and the rest after the last reader has ended.
func (w *peerTransport) close() {
	// Readers that wait for the peerAuthorizer end at once.
	close(w.closed)
	w.remote.Shutdown(false)
	w.stopEndpoints()
	w.system.EventStream.Unsubscribe(w.endpointEvents)
}

// stopEndpoints makes the library end its actors for peers, and tell its readers to stop. A reader whose connection
// has just ended has closed the channel on which it gets that message, but is still in the library's table: the
// library panics then. By that time its actors and all connections have ended, so nothing is left to do.
func (w *peerTransport) stopEndpoints() {
	defer func() {
		if r := recover(); r != nil {
			w.system.Logger().Warn("panic while the readers of peers were stopped, which had ended", "panic", r)
		}
	}()
	w.remote.Shutdown(true)
}

// refuseUnary refuses the library's unary calls, which panic in the version that is used.
func refuseUnary(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
	return nil, status.Error(codes.Unimplemented, "not offered")
}

// serveStream puts an inboundStream between a stream of a peer and the library's reader. A panic of either costs the
// stream and not the program.
func (w *peerTransport) serveStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	// The stream is refused before the library knows of it.
	in, err := w.newInboundStream(stream)
	if err != nil {
		return err
	}
	defer in.closeBinding()
	defer func() {
		if r := recover(); r != nil {
			w.system.Logger().Error("panic at a peer's stream, which is closed", "peer", in.peer.identity, "panic", r,
				"stack", string(debug.Stack()))
			err = status.Error(codes.Internal, "the stream cannot be read")
		}
	}()
	return next(srv, in)
}

// handleUnbound ends the watches of an address when its last stream is gone or it belongs to another identity.
func (w *peerTransport) handleUnbound(b *binding) {
	for at, watcher := range w.registry.takeWatchers(b) {
		w.sendToLocal(at.localID, &actor.Unwatch{Watcher: watcher})
	}
	// Relays that serve actors at the address must end, too.
	if w.authorizerID != "" {
		w.system.Root.Send(w.authorizerPID(), addressLost{b.identity, b.address})
	}
	if !w.registry.isValid(b, time.Time{}) { // the address belongs to another identity, so the library's streams to it must end
		w.system.EventStream.Publish(&protoremote.EndpointTerminatedEvent{Address: b.address})
	}
}

// endWatched reports the end of the manager to every actor of a peer that watches it, and to those that will.
func (w *peerTransport) endWatched() {
	for _, watcher := range w.registry.endWatched() {
		w.system.Root.Send(watcher, &actor.Terminated{Who: w.authorizerPID()})
	}
}

// endpointEnded frees the room of the messages that waited for an address. The library itself reports the end to the
// watchers here.
func (w *peerTransport) endpointEnded(event any) {
	if e, ok := event.(*protoremote.EndpointTerminatedEvent); ok {
		w.sendLimiter.releaseAll(e.Address)
		w.registry.clearWatched(e.Address)
	}
}

// authorizerPID returns the peerAuthorizer of this side.
func (w *peerTransport) authorizerPID() *actor.PID {
	return actor.NewPID(w.system.Address(), w.authorizerID)
}

// sendToLocal sends a system message to an actor here, if it exists.
func (w *peerTransport) sendToLocal(id string, message any) {
	if ref, ok := w.system.ProcessRegistry.GetLocal(id); ok {
		ref.SendSystemMessage(actor.NewPID(w.system.Address(), id), message)
	}
}

// sendToPeer sends a message of size bytes to an actor of a peer; false if too much waits for its address already.
// from is the sender that the peer may answer, nil for none.
func (w *peerTransport) sendToPeer(to *actor.PID, message any, from *actor.PID, size int) bool {
	return w.sendToPeerBounded(to, message, from, size, maxUnread)
}

// sendToPeerBounded is sendToPeer with a lower bound of the messages that may wait before it.
func (w *peerTransport) sendToPeerBounded(to *actor.PID, message any, from *actor.PID, size, maxMessages int) bool {
	// outboundStream.SendMsg frees the room when the library has written the message.
	if !w.sendLimiter.reserve(to.GetAddress(), size, maxMessages) {
		return false
	}
	if from == nil {
		w.system.Root.Send(to, message)
	} else {
		w.system.Root.RequestWithCustomSender(to, message, from)
	}
	return true
}
