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

// wire is protoactor's remote, with everything that peers send read, judged and delivered here. The library sees their
// greeting, and the end of actors that this side watches.
type wire struct {
	cfg     Config
	system  *actor.ActorSystem
	remote  *protoremote.Remote
	gate    string // the id of the gatekeeper; empty on the side of a peer
	ledger  *ledger
	outbox  *outbox
	doorman *doorman
	ends    *eventstream.Subscription
	ready   chan struct{} // closed when the gatekeeper can be reached
	ended   chan struct{} // closed when the wire closes
	dropped atomic.Int64
}

// newWire prepares protoactor's remote for the system. gate is the id of the only actor that peers may name; empty on the
// side of a peer, where whoever was asked may answer to any.
func newWire(system *actor.ActorSystem, cfg Config, gate string) *wire {
	w := &wire{cfg: cfg, system: system, gate: gate, outbox: newOutbox(), doorman: newDoorman(),
		ready: make(chan struct{}), ended: make(chan struct{})}
	w.ledger = newLedger(w.left)
	return w
}

// listen lets peers in.
func (w *wire) listen() (err error) {
	// The library panics when it cannot listen.
	defer func() {
		if r := recover(); r != nil {
			w.system.EventStream.Unsubscribe(w.ends)
			err = &messages.Error{Op: "remote", Class: messages.ClassInvalid,
				Text: fmt.Sprintf("cannot listen on %s: %v", w.cfg.address(), r), Fix: "choose another host or port"}
		}
	}()
	frame := w.cfg.MaxMessage + frameSlack
	config := protoremote.Configure(w.cfg.Host, w.cfg.Port,
		protoremote.WithServerOptions(
			grpc.Creds(serverCredentials{credentials.NewTLS(w.cfg.serverTLS()), w.doorman}),
			grpc.ForceServerCodecV2(newCodec()),
			grpc.WaitForHandlers(true),
			grpc.MaxRecvMsgSize(frame),
			grpc.MaxConcurrentStreams(1), // the library opens one on each connection
			grpc.MaxHeaderListSize(16<<10),
			grpc.ConnectionTimeout(handshakeTime),
			grpc.KeepaliveParams(keepalive.ServerParameters{Time: w.cfg.alive.Time, Timeout: w.cfg.alive.Timeout}),
			grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: w.cfg.alive.Time / 2, PermitWithoutStream: true}),
			grpc.ChainStreamInterceptor(w.serve),
			grpc.ChainUnaryInterceptor(refuseUnary),
		),
		protoremote.WithDialOptions(
			grpc.WithTransportCredentials(clientCredentials{credentials.NewTLS(w.cfg.clientTLS()), w.shown}),
			grpc.WithChainStreamInterceptor(w.dial),
			grpc.WithKeepaliveParams(w.cfg.alive),
			grpc.WithNoProxy(), // what was probed is what is dialled
		),
		protoremote.WithCallOptions(grpc.MaxCallSendMsgSize(frame), grpc.MaxCallRecvMsgSize(maxControl)),
		protoremote.WithEndpointWriterQueueSize(256), // it grows; the library's own size takes 16 MB for each address
		protoremote.WithAdvertisedHost(w.cfg.AdvertisedHost),
	)
	config.MaxRetryCount = 1 // more leaks goroutines for every peer that cannot be reached
	w.remote = protoremote.NewRemote(w.system, config)
	w.ends = w.system.EventStream.Subscribe(w.endpointEnded)
	w.remote.Start()
	return nil
}

// close stops listening and waits for the readers. The library's own order tells its readers to stop while they read, which
// is a data race: so the connections end first, and the rest when nobody reads any more.
func (w *wire) close() {
	close(w.ended)
	w.remote.Shutdown(false)
	w.stopEndpoints()
	w.system.EventStream.Unsubscribe(w.ends)
}

// stopEndpoints has the library end its actors for peers, and tell its readers to stop. A reader whose connection has ended a moment ago has
// closed the channel on which it is told, and stands in the library's table all the same: the library panics then. By that time its actors
// have ended, and so have all connections, so that nothing is left to do.
func (w *wire) stopEndpoints() {
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

// serve stands between a stream of a peer and the library's reader. A panic of either costs the stream.
func (w *wire) serve(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	in, err := w.inbound(stream)
	if err != nil {
		return err
	}
	defer in.end()
	defer func() {
		if r := recover(); r != nil {
			w.system.Logger().Error("panic at a peer's stream, which is closed", "peer", in.peer.identity, "panic", r,
				"stack", string(debug.Stack()))
			err = status.Error(codes.Internal, "the stream cannot be read")
		}
	}()
	return next(srv, in)
}

// left ends what an address had here, when its last stream is gone or it belongs to another identity.
func (w *wire) left(b *binding) {
	for at, who := range w.ledger.watchersOf(b) {
		w.toLocal(at.here, &actor.Unwatch{Watcher: who})
	}
	if w.gate != "" {
		w.system.Root.Send(w.gatePID(), gone{b.identity, b.address})
	}
	if !w.ledger.valid(b, time.Time{}) { // what the library has open there is no peer's any more
		w.system.EventStream.Publish(&protoremote.EndpointTerminatedEvent{Address: b.address})
	}
}

// endpointEnded forgets what waited for an address. The library tells its watchers.
func (w *wire) endpointEnded(event any) {
	if e, ok := event.(*protoremote.EndpointTerminatedEvent); ok {
		w.outbox.drop(e.Address)
		w.ledger.forgetAll(e.Address)
	}
}

func (w *wire) gatePID() *actor.PID { return actor.NewPID(w.system.Address(), w.gate) }

// toLocal gives a system message to an actor here, if it is there.
func (w *wire) toLocal(id string, message any) {
	if ref, ok := w.system.ProcessRegistry.GetLocal(id); ok {
		ref.SendSystemMessage(actor.NewPID(w.system.Address(), id), message)
	}
}

// toPeer sends a message to an actor of a peer; false if too much waits for it already.
func (w *wire) toPeer(to *actor.PID, message any, from *actor.PID, size int) bool {
	return w.toSlowPeer(to, message, from, size, maxUnread)
}

// toSlowPeer is toPeer for what is not worth a place behind more messages than most.
func (w *wire) toSlowPeer(to *actor.PID, message any, from *actor.PID, size, most int) bool {
	if !w.outbox.reserve(to.GetAddress(), size, most) {
		return false
	}
	if from == nil {
		w.system.Root.Send(to, message)
	} else {
		w.system.Root.RequestWithCustomSender(to, message, from)
	}
	return true
}
