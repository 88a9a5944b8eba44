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

// maxControl bounds what an address answers on a stream that this side opened: the library's greeting and farewell.
const maxControl = 64 << 10

// peerTransport is protoactor's remote, with everything that peers send read, judged and delivered here. The library sees their
// greeting, and the end of actors that this side watches.
type peerTransport struct {
	cfg            Config
	system         *actor.ActorSystem
	remote         *protoremote.Remote
	authorizerID   string // the id of the gatekeeper; empty on the side of a peer
	registry       *addressRegistry
	sendLimiter    *sendLimiter
	connLimiter    *connLimiter
	endpointEvents *eventstream.Subscription
	ready          chan struct{} // closed when the gatekeeper can be reached
	closed         chan struct{} // closed when the wire closes
	dropped        atomic.Int64
}

// newPeerTransport prepares protoactor's remote for the system. gate is the id of the only actor that peers may name; empty on the
// side of a peer, where whoever was asked may answer to any.
func newPeerTransport(system *actor.ActorSystem, cfg Config, authorizerID string) *peerTransport {
	w := &peerTransport{cfg: cfg, system: system, authorizerID: authorizerID, sendLimiter: newSendLimiter(), connLimiter: newConnLimiter(),
		ready: make(chan struct{}), closed: make(chan struct{})}
	w.registry = newAddressRegistry(w.handleUnbound)
	return w
}

// listen lets peers in.
func (w *peerTransport) listen() (err error) {
	// The library panics when it cannot listen.
	defer func() {
		if r := recover(); r != nil {
			w.system.EventStream.Unsubscribe(w.endpointEvents)
			err = &messages.Error{Op: "remote", Class: messages.ClassInvalid,
				Text: fmt.Sprintf("cannot listen on %s: %v", w.cfg.listenAddress(), r), Fix: "choose another host or port"}
		}
	}()
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
			grpc.WithNoProxy(), // what was probed is what is dialled
		),
		protoremote.WithCallOptions(grpc.MaxCallSendMsgSize(frame), grpc.MaxCallRecvMsgSize(maxControl)),
		protoremote.WithEndpointWriterQueueSize(256), // it grows; the library's own size takes 16 MB for each address
		protoremote.WithAdvertisedHost(w.cfg.AdvertisedHost),
	)
	config.MaxRetryCount = 1 // more leaks goroutines for every peer that cannot be reached
	w.remote = protoremote.NewRemote(w.system, config)
	w.endpointEvents = w.system.EventStream.Subscribe(w.endpointEnded)
	w.remote.Start()
	return nil
}

// close stops listening and waits for the readers. The library's own order tells its readers to stop while they read, which
// is a data race: so the connections end first, and the rest when nobody reads any more.
func (w *peerTransport) close() {
	close(w.closed)
	w.remote.Shutdown(false)
	w.stopEndpoints()
	w.system.EventStream.Unsubscribe(w.endpointEvents)
}

// stopEndpoints has the library end its actors for peers, and tell its readers to stop. A reader whose connection has ended a moment ago has
// closed the channel on which it is told, and stands in the library's table all the same: the library panics then. By that time its actors
// have ended, and so have all connections, so that nothing is left to do.
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

// serveStream stands between a stream of a peer and the library's reader. A panic of either costs the stream.
func (w *peerTransport) serveStream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
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

// handleUnbound ends what an address had here, when its last stream is gone or it belongs to another identity.
func (w *peerTransport) handleUnbound(b *binding) {
	for at, watcher := range w.registry.takeWatchers(b) {
		w.sendToLocal(at.localID, &actor.Unwatch{Watcher: watcher})
	}
	if w.authorizerID != "" {
		w.system.Root.Send(w.authorizerPID(), addressLost{b.identity, b.address})
	}
	if !w.registry.isValid(b, time.Time{}) { // what the library has open there is no peer's any more
		w.system.EventStream.Publish(&protoremote.EndpointTerminatedEvent{Address: b.address})
	}
}

// endpointEnded forgets what waited for an address. The library tells its watchers.
func (w *peerTransport) endpointEnded(event any) {
	if e, ok := event.(*protoremote.EndpointTerminatedEvent); ok {
		w.sendLimiter.releaseAll(e.Address)
		w.registry.clearWatched(e.Address)
	}
}

func (w *peerTransport) authorizerPID() *actor.PID {
	return actor.NewPID(w.system.Address(), w.authorizerID)
}

// sendToLocal gives a system message to an actor here, if it is there.
func (w *peerTransport) sendToLocal(id string, message any) {
	if ref, ok := w.system.ProcessRegistry.GetLocal(id); ok {
		ref.SendSystemMessage(actor.NewPID(w.system.Address(), id), message)
	}
}

// sendToPeer sends a message to an actor of a peer; false if too much waits for it already.
func (w *peerTransport) sendToPeer(to *actor.PID, message any, from *actor.PID, size int) bool {
	return w.sendToPeerBounded(to, message, from, size, maxUnread)
}

// sendToPeerBounded is sendToPeer for what is not worth a place behind more messages than most.
func (w *peerTransport) sendToPeerBounded(to *actor.PID, message any, from *actor.PID, size, maxMessages int) bool {
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
