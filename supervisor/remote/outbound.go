package remote

import (
	"context"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	protoremote "github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// checkDialled checks the certificate of an address that this side dials, before anything is sent there. A manager
// dials only peers, which are bound to their addresses already; the side of Join learns here which identity it speaks
// to.
func (w *peerTransport) checkDialled(address, identity string, until time.Time) error {
	// On the side of Join any identity of the authority is accepted: the program chose the address itself.
	if w.authorizerID == "" {
		w.registry.bindAddress(address, identity, until, false)
	} else if w.registry.ownerOf(address) != identity {
		return errWrongIdentity
	}
	return nil
}

// openStream opens the library's stream to an address. A served manager sends to the addresses of peers only: it
// dials no other address, whichever a message names.
func (w *peerTransport) openStream(
	ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	address := conn.Target()
	if w.authorizerID != "" && w.registry.ownerOf(address) == "" {
		return nil, status.Error(codes.PermissionDenied, "no peer is bound to the address")
	}
	// open dials, if there is no connection yet, and checkDialled runs in its handshake.
	stream, err := open(ctx, desc, conn, method, opts...)
	if err != nil {
		return nil, err
	}
	// The handshake has bound the address, or has found it bound; but the binding may have ended since.
	b := w.registry.openStream(address)
	if b == nil {
		return nil, status.Error(codes.PermissionDenied, "the address is bound to no peer any more")
	}
	out := &outboundStream{ClientStream: stream, transport: w, binding: b}
	context.AfterFunc(stream.Context(), out.closeBinding) // a stream may end without another call of RecvMsg
	return out, nil
}

// An outboundStream is a stream to an address.
type outboundStream struct {
	grpc.ClientStream
	transport *peerTransport
	// binding is the address's at the time of opening; SendMsg asks each time whether it is still valid.
	binding *binding
	once    sync.Once // closeStream must be called once for each openStream
}

// closeBinding counts the end of the stream at its address, once.
func (o *outboundStream) closeBinding() {
	o.once.Do(func() { o.transport.registry.closeStream(o.binding) })
}

// RecvMsg implements grpc.ClientStream. An error is the end of the stream.
func (o *outboundStream) RecvMsg(m any) error {
	err := o.ClientStream.RecvMsg(m)
	if err != nil {
		o.closeBinding()
	}
	return err
}

// SendMsg implements grpc.ClientStream: the library calls it with each batch. It records which actors here watch
// actors there, before these can report their end, and frees the room of the messages that were written.
func (o *outboundStream) SendMsg(m any) error {
	if !o.transport.registry.isValid(o.binding, time.Now()) {
		o.closeBinding()
		return status.Error(codes.Unauthenticated, "the certificate of the address has ended, or it shows another one")
	}
	count, bytes := 0, 0
	if msg, ok := m.(*protoremote.RemoteMessage); ok {
		b := msg.GetMessageBatch()
		for _, e := range b.GetEnvelopes() {
			name := b.GetTypeNames()[e.GetTypeId()]
			// A frame may hold many messages. Only our own have reserved room; those of the library have not.
			if isOurMessage(name) {
				count, bytes = count+1, bytes+len(e.GetMessageData())
				continue
			}
			o.noteWatch(name, b.GetTargets()[e.GetTarget()], e.GetMessageData())
		}
	}
	err := o.ClientStream.SendMsg(m)
	// The room is freed also after an error, because the library does not send the batch again.
	o.transport.sendLimiter.release(o.binding.address, count, bytes)
	if err != nil {
		o.closeBinding()
	}
	return err
}

// noteWatch records the beginning or the end of a watch that an actor here sends to the actor target there.
func (o *outboundStream) noteWatch(name, target string, data []byte) {
	switch name {
	case "actor.Watch":
		var m actor.Watch
		if proto.Unmarshal(data, &m) == nil {
			o.transport.registry.addWatched(o.binding, watchKey{target, m.GetWatcher().GetId()})
		}
	case "actor.Unwatch":
		var m actor.Unwatch
		if proto.Unmarshal(data, &m) == nil {
			o.transport.registry.removeWatched(o.binding, watchKey{target, m.GetWatcher().GetId()})
		}
	}
}
