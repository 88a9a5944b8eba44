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

// shown judges the certificate of an address that is dialled, before anything is sent there. A manager dials only peers,
// which are bound to their addresses already; a peer learns here who it speaks to.
func (w *wire) shown(address, identity string, until time.Time) error {
	if w.gate == "" {
		w.ledger.bind(address, identity, until, false)
	} else if w.ledger.owner(address) != identity {
		return errDialled
	}
	return nil
}

// dial opens the library's stream to an address. What a served manager sends goes to addresses of peers only: no other
// one is dialled, whatever a message names.
func (w *wire) dial(
	ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption,
) (grpc.ClientStream, error) {
	address := conn.Target()
	if w.gate != "" && w.ledger.owner(address) == "" {
		return nil, status.Error(codes.PermissionDenied, "no peer is bound to the address")
	}
	stream, err := open(ctx, desc, conn, method, opts...)
	if err != nil {
		return nil, err
	}
	// The handshake bound it, or found it bound.
	b := w.ledger.open(address)
	if b == nil {
		return nil, status.Error(codes.PermissionDenied, "the address is bound to no peer any more")
	}
	out := &outbound{ClientStream: stream, wire: w, binding: b}
	context.AfterFunc(stream.Context(), out.end)
	return out, nil
}

// outbound is a stream to an address.
type outbound struct {
	grpc.ClientStream
	wire    *wire
	binding *binding
	once    sync.Once
}

func (o *outbound) end() { o.once.Do(func() { o.wire.ledger.close(o.binding) }) }

// RecvMsg implements grpc.ClientStream.
func (o *outbound) RecvMsg(m any) error {
	err := o.ClientStream.RecvMsg(m)
	if err != nil {
		o.end()
	}
	return err
}

// SendMsg implements grpc.ClientStream. It notes which actors here watch which there before they can be told, and gives the
// room of what was written back.
func (o *outbound) SendMsg(m any) error {
	if !o.wire.ledger.valid(o.binding, time.Now()) {
		o.end()
		return status.Error(codes.Unauthenticated, "the certificate of the address has ended, or it shows another one")
	}
	count, bytes := 0, 0
	if msg, ok := m.(*protoremote.RemoteMessage); ok {
		b := msg.GetMessageBatch()
		for _, e := range b.GetEnvelopes() {
			name := b.GetTypeNames()[e.GetTypeId()]
			if travels(name) {
				count, bytes = count+1, bytes+len(e.GetMessageData())
				continue
			}
			o.note(name, b.GetTargets()[e.GetTarget()], e.GetMessageData())
		}
	}
	err := o.ClientStream.SendMsg(m)
	o.wire.outbox.sent(o.binding.address, count, bytes)
	if err != nil {
		o.end()
	}
	return err
}

func (o *outbound) note(name, target string, data []byte) {
	switch name {
	case "actor.Watch":
		var m actor.Watch
		if proto.Unmarshal(data, &m) == nil {
			o.wire.ledger.follow(o.binding, watching{target, m.GetWatcher().GetId()})
		}
	case "actor.Unwatch":
		var m actor.Unwatch
		if proto.Unmarshal(data, &m) == nil {
			o.wire.ledger.forget(o.binding, watching{target, m.GetWatcher().GetId()})
		}
	}
}
