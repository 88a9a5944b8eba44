package remote

import (
	"errors"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	protoremote "github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// inbound is a stream of a peer. One goroutine, the library's, reads it.
type inbound struct {
	grpc.ServerStream
	wire    *wire
	peer    peerInfo
	greeted bool
	binding *binding // nil until the greeting, and for a manager whose address its certificate does not name
}

func (w *wire) inbound(stream grpc.ServerStream) (*inbound, error) {
	select {
	case <-w.ready:
	case <-w.ended:
		return nil, status.Error(codes.Unavailable, "closed")
	}
	p, _ := peer.FromContext(stream.Context())
	info, ok := p.AuthInfo.(peerInfo)
	if !ok {
		return nil, status.Error(codes.Unauthenticated, "no certificate")
	}
	if w.gate == "" && !w.ledger.sentTo(info.identity) {
		return nil, status.Error(codes.PermissionDenied, "nobody here asked this peer for anything")
	}
	return &inbound{ServerStream: stream, wire: w, peer: info}, nil
}

func (in *inbound) end() {
	if in.binding != nil {
		in.wire.ledger.close(in.binding)
	}
}

// RecvMsg implements grpc.ServerStream. It returns what the library should see.
func (in *inbound) RecvMsg(m any) error {
	msg, ok := m.(*protoremote.RemoteMessage)
	if !ok {
		return status.Error(codes.Internal, "an unknown frame")
	}
	for {
		if err := in.ServerStream.RecvMsg(msg); err != nil {
			return err
		}
		in.peer.conn.whole()
		if time.Now().After(in.peer.cert.NotAfter) {
			return status.Error(codes.Unauthenticated, "the certificate has ended")
		}
		switch t := msg.GetMessageType().(type) {
		case *protoremote.RemoteMessage_ConnectRequest:
			address, err := in.greet(t.ConnectRequest)
			if err != nil {
				return err
			}
			msg.MessageType = &protoremote.RemoteMessage_ConnectRequest{ConnectRequest: &protoremote.ConnectRequest{
				ConnectionType: &protoremote.ConnectRequest_ServerConnection{
					ServerConnection: &protoremote.ServerConnection{Address: address}}}}
			return nil
		case *protoremote.RemoteMessage_MessageBatch:
			if !in.greeted || in.binding != nil && !in.wire.ledger.valid(in.binding, time.Now()) {
				return status.Error(codes.PermissionDenied, "the address is not this peer's")
			}
			ends, err := in.take(t.MessageBatch)
			if err != nil {
				return err
			}
			if len(ends.GetEnvelopes()) > 0 {
				t.MessageBatch = ends
				return nil
			}
		default:
			in.wire.dropped.Add(1)
		}
	}
}

// greet binds the stream to the address that the peer names: one that its certificate or the configuration names, and that
// shows a certificate of the same identity when it is dialled.
func (in *inbound) greet(c *protoremote.ConnectRequest) (string, error) {
	sc := c.GetServerConnection()
	if sc == nil || in.greeted {
		return "", status.Error(codes.InvalidArgument, "one greeting, with an address, begins a stream")
	}
	in.greeted = true
	address := sc.GetAddress()
	if err := in.prove(address); err != nil {
		if in.wire.gate == "" {
			return "", nil // a manager may answer whoever asked it; its own address is not believed
		}
		in.wire.system.Logger().Warn("a peer is refused", "peer", in.peer.identity, "error", err)
		return "", status.Error(codes.PermissionDenied, err.Error())
	}
	in.binding = in.wire.ledger.bind(address, in.peer.identity, in.peer.cert.NotAfter, true)
	return address, nil
}

func (in *inbound) prove(address string) error {
	w := in.wire
	if address == w.system.Address() || !mayListen(in.peer.cert, address, w.cfg.rightsOf(in.peer.identity).Addresses) {
		return errors.New("the certificate does not name the host of the address at which the peer listens")
	}
	if w.ledger.owner(address) == in.peer.identity {
		return nil
	}
	identity, err := probe(in.Context(), address, w.cfg.clientTLS())
	if err == nil && identity != in.peer.identity {
		err = errDialled
	}
	return err
}

// take delivers the messages of a frame, and returns what is left for the library: ends of actors that are watched here.
// It waits until the gate has taken all of them, so that a peer holds one frame at most in the gate's queue.
func (in *inbound) take(b *protoremote.MessageBatch) (*protoremote.MessageBatch, error) {
	ends := &protoremote.MessageBatch{TypeNames: []string{"actor.Terminated"}}
	left, taken := maxFields, 0
	received := make(chan struct{}, len(b.GetEnvelopes()))
	for _, e := range b.GetEnvelopes() {
		m, ok := in.open(b, e)
		if ok {
			ok, left = in.deliver(m, e.GetMessageData(), left, received, &taken, ends)
		}
		if !ok {
			in.wire.dropped.Add(1)
		}
	}
	for ; taken > 0; taken-- {
		select {
		case <-received:
		case <-in.Context().Done():
			return nil, in.Context().Err()
		case <-in.wire.ended:
			return nil, status.Error(codes.Unavailable, "closed")
		}
	}
	return ends, nil
}

// envelope is a message with its names looked up.
type envelope struct {
	name, target string
	request      uint32
	sender       *actor.PID
}

// open looks the names of an envelope up. Every index is checked, and a sender has to live at the stream's address.
func (in *inbound) open(b *protoremote.MessageBatch, e *protoremote.MessageEnvelope) (envelope, bool) {
	if e.GetTarget() < 0 || int(e.GetTarget()) >= len(b.GetTargets()) ||
		e.GetTypeId() < 0 || int(e.GetTypeId()) >= len(b.GetTypeNames()) ||
		e.GetSender() < 0 || int(e.GetSender()) > len(b.GetSenders()) || e.GetSerializerId() != 0 {
		return envelope{}, false
	}
	m := envelope{name: b.GetTypeNames()[e.GetTypeId()], target: b.GetTargets()[e.GetTarget()], request: e.GetTargetRequestId()}
	if in.wire.gate != "" && m.target != in.wire.gate && m.name != "actor.Terminated" {
		return envelope{}, false
	}
	if e.GetSender() == 0 {
		return m, true
	}
	sender := b.GetSenders()[e.GetSender()-1]
	switch {
	case in.lives(sender):
		m.sender = &actor.PID{Address: sender.GetAddress(), Id: sender.GetId(), RequestId: e.GetSenderRequestId()}
	case in.wire.gate != "":
		return envelope{}, false
	}
	return m, true
}

// lives reports whether an actor is one at the stream's address.
func (in *inbound) lives(who *actor.PID) bool {
	return who != nil && in.binding != nil && who.GetAddress() == in.binding.address && who.GetId() != "" && len(who.GetId()) <= maxID
}

// deliver reads a message and gives it to the actor that it is for. left is how many fields the frame may still have.
func (in *inbound) deliver(
	m envelope, data []byte, left int, received chan<- struct{}, taken *int, ends *protoremote.MessageBatch,
) (bool, int) {
	switch m.name {
	case "actor.Watch":
		var w actor.Watch
		left, err := decode(&w, data, left)
		if err != nil || !in.lives(w.GetWatcher()) || !in.wire.ledger.watch(in.binding, watching{w.GetWatcher().GetId(), m.target}, w.GetWatcher()) {
			return false, left
		}
		in.wire.tell(m.target, &w)
		return true, left
	case "actor.Unwatch":
		var w actor.Unwatch
		left, err := decode(&w, data, left)
		if err != nil || !in.lives(w.GetWatcher()) || !in.wire.ledger.unwatch(in.binding, watching{w.GetWatcher().GetId(), m.target}) {
			return false, left
		}
		in.wire.toLocal(m.target, &w)
		return true, left
	case "actor.Terminated":
		var t actor.Terminated
		left, err := decode(&t, data, left)
		if err != nil || !in.lives(t.GetWho()) || !in.wire.ledger.forget(in.binding, watching{t.GetWho().GetId(), m.target}) {
			return false, left
		}
		clean, err := proto.Marshal(&actor.Terminated{Who: actor.NewPID(t.GetWho().GetAddress(), t.GetWho().GetId()), Why: t.GetWhy()})
		if err != nil {
			return false, left
		}
		ends.Envelopes = append(ends.Envelopes, &protoremote.MessageEnvelope{Target: int32(len(ends.GetTargets())), MessageData: clean})
		ends.Targets = append(ends.Targets, m.target)
		return true, left
	}
	if in.wire.gate == "" {
		return in.reply(m, data, left)
	}
	return in.command(m, data, left, received, taken)
}

// tell gives a watch to an actor here, or says that there is no such actor, as the library does.
func (w *wire) tell(id string, watch *actor.Watch) {
	ref, _ := w.system.ProcessRegistry.GetLocal(id) // the dead letters if it is not there, which answer
	ref.SendSystemMessage(actor.NewPID(w.system.Address(), id), watch)
}

// reply hands an answer of a manager to whoever asked.
func (in *inbound) reply(m envelope, data []byte, left int) (bool, int) {
	msg := newMessage(m.name, answer)
	if msg == nil && m.name == "actor.DeadLetterResponse" {
		msg = &actor.DeadLetterResponse{}
	}
	if msg == nil {
		return false, left
	}
	left, err := decode(msg, data, left)
	if err != nil {
		return false, left
	}
	to := actor.NewPID(in.wire.system.Address(), m.target)
	to.RequestId = m.request
	in.wire.system.Root.Send(to, &actor.MessageEnvelope{Message: msg, Sender: m.sender})
	return true, left
}

// command hands a command to the gate. One that is too large is not read but for its id, and is answered.
func (in *inbound) command(m envelope, data []byte, left int, received chan<- struct{}, taken *int) (bool, int) {
	msg := newMessage(m.name, command)
	if msg == nil {
		return false, left
	}
	c := arrived{identity: in.peer.identity, sender: m.sender, message: msg, received: received, size: len(data)}
	if limit := in.wire.cfg.MaxMessage; len(data) > limit {
		setID(msg, data)
		c.refused, c.size = tooLarge("the command", len(data), limit), 0
	} else {
		before := left
		var err error
		if left, err = decode(msg, data, left); err != nil {
			return false, left
		}
		c.size += (before - left) * fieldCost
	}
	*taken++
	in.wire.system.Root.Send(in.wire.gatePID(), c)
	return true, left
}

// setID reads the id of a command, by which its peer knows the reply, and nothing else.
func setID(to proto.Message, raw []byte) {
	fields := to.ProtoReflect().Descriptor().Fields()
	for len(raw) > 0 {
		number, kind, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return
		}
		value := raw[n:]
		if n = protowire.ConsumeFieldValue(number, kind, value); n < 0 {
			return
		}
		if f := fields.ByNumber(number); f != nil && (f.Name() == "call_id" || f.Name() == "request_id") {
			if id, m := protowire.ConsumeString(value); kind == protowire.BytesType && f.Kind() == protoreflect.StringKind && m > 0 && m <= maxID {
				to.ProtoReflect().Set(f, protoreflect.ValueOfString(id))
			}
			if id, m := protowire.ConsumeVarint(value); kind == protowire.VarintType && f.Kind() == protoreflect.Uint64Kind && m > 0 {
				to.ProtoReflect().Set(f, protoreflect.ValueOfUint64(id))
			}
		}
		raw = value[n:]
	}
}
