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

// An inboundStream is a stream that a peer has opened. One goroutine, the library's, reads it and owns its fields.
type inboundStream struct {
	grpc.ServerStream
	transport *peerTransport
	peer      peerInfo
	greeted   bool     // the peer has sent its greeting; a second one is refused
	binding   *binding // nil until the greeting, and on the side of Join for a manager whose address its certificate does not name
}

// newInboundStream admits a stream once this side is ready, or returns the status with which it is refused.
func (w *peerTransport) newInboundStream(stream grpc.ServerStream) (*inboundStream, error) {
	select {
	case <-w.ready:
	case <-w.closed:
		return nil, status.Error(codes.Unavailable, "closed")
	}
	// The identity comes from the TLS handshake of the connection: see serverCredentials.
	p, _ := peer.FromContext(stream.Context())
	info, ok := p.AuthInfo.(peerInfo)
	if !ok {
		return nil, status.Error(codes.Unauthenticated, "no certificate")
	}
	// A side that only joined expects streams from managers that it has sent to.
	if w.authorizerID == "" && !w.registry.hasDialled(info.identity) {
		return nil, status.Error(codes.PermissionDenied, "nobody here asked this peer for anything")
	}
	return &inboundStream{ServerStream: stream, transport: w, peer: info}, nil
}

// closeBinding counts the end of the stream at its address.
func (in *inboundStream) closeBinding() {
	if in.binding != nil {
		in.transport.registry.closeStream(in.binding)
	}
}

// RecvMsg implements grpc.ServerStream: the library calls it for the next frame. It handles frames until there is one
// that the library must see: a greeting, or the end of an actor that is watched here.
func (in *inboundStream) RecvMsg(m any) error {
	msg, ok := m.(*protoremote.RemoteMessage)
	if !ok {
		return status.Error(codes.Internal, "an unknown frame")
	}
	for {
		if err := in.ServerStream.RecvMsg(msg); err != nil {
			return err
		}
		in.peer.conn.resetPartial() // the frame is complete, so its bytes no longer count as unfinished
		// A long-lived stream must not outlive its certificate.
		if time.Now().After(in.peer.cert.NotAfter) {
			return status.Error(codes.Unauthenticated, "the certificate has ended")
		}
		switch t := msg.GetMessageType().(type) {
		case *protoremote.RemoteMessage_ConnectRequest:
			address, err := in.bindAddress(t.ConnectRequest)
			if err != nil {
				return err
			}
			// The greeting is written anew, so that the library sees nothing but the address that was checked.
			msg.MessageType = &protoremote.RemoteMessage_ConnectRequest{ConnectRequest: &protoremote.ConnectRequest{
				ConnectionType: &protoremote.ConnectRequest_ServerConnection{
					ServerConnection: &protoremote.ServerConnection{Address: address}}}}
			return nil
		case *protoremote.RemoteMessage_MessageBatch:
			// Another identity may have shown itself at the address since the greeting.
			if !in.greeted || in.binding != nil && !in.transport.registry.isValid(in.binding, time.Now()) {
				return status.Error(codes.PermissionDenied, "the address is not this peer's")
			}
			ends, err := in.deliverBatch(t.MessageBatch)
			if err != nil {
				return err
			}
			// The rest of the batch was delivered here; the next frame follows.
			if len(ends.GetEnvelopes()) > 0 {
				t.MessageBatch = ends
				return nil
			}
		default:
			in.transport.dropped.Add(1)
		}
	}
}

// bindAddress binds the stream to the address in the peer's greeting, which must be one that its certificate or the
// configuration names, and that shows a certificate of the same identity when it is dialled.
func (in *inboundStream) bindAddress(c *protoremote.ConnectRequest) (string, error) {
	// A client connection, the library's other kind of greeting, has no address that could be checked.
	sc := c.GetServerConnection()
	if sc == nil || in.greeted {
		return "", status.Error(codes.InvalidArgument, "one greeting, with an address, begins a stream")
	}
	in.greeted = true
	address := sc.GetAddress()
	if err := in.verifyAddress(address); err != nil {
		if in.transport.authorizerID == "" {
			return "", nil // a manager may answer this side, but its claim to an address is not believed
		}
		in.transport.system.Logger().Warn("a peer is refused", "peer", in.peer.identity, "error", err)
		return "", status.Error(codes.PermissionDenied, err.Error())
	}
	in.binding = in.transport.registry.bindAddress(address, in.peer.identity, in.peer.cert.NotAfter, true)
	return address, nil
}

// verifyAddress returns the reason for which an address is not believed to be the peer's, nil if it is.
func (in *inboundStream) verifyAddress(address string) error {
	w := in.transport
	// Nor may a peer claim the address of this side.
	if address == w.system.Address() || !mayListen(in.peer.cert, address, w.cfg.rightsOf(in.peer.identity).Addresses) {
		return errors.New("the certificate does not name the host of the address at which the peer listens")
	}
	// An address that has proved itself before is not dialled again.
	if w.registry.ownerOf(address) == in.peer.identity {
		return nil
	}
	// The certificate names the host only; the probe shows which program listens at the port.
	identity, err := probeIdentity(in.Context(), address, w.cfg.clientTLS())
	if err == nil && identity != in.peer.identity {
		err = errWrongIdentity
	}
	return err
}

// deliverBatch delivers the messages of a frame, and returns those that the library must see: ends of actors that are
// watched here. It waits until the peerAuthorizer has taken all commands, so that each stream has at most one frame
// in that actor's queue. Messages that cannot be delivered are dropped and counted.
func (in *inboundStream) deliverBatch(b *protoremote.MessageBatch) (*protoremote.MessageBatch, error) {
	terminations := &protoremote.MessageBatch{TypeNames: []string{"actor.Terminated"}}
	// The fields of all messages together are bounded, not only those of each.
	fieldsLeft, delivered := maxFields, 0
	// The peerAuthorizer sends one value for each command of this frame.
	received := make(chan struct{}, len(b.GetEnvelopes())) // room for every command, so that the peerAuthorizer never waits
	for _, e := range b.GetEnvelopes() {
		m, ok := in.resolveEnvelope(b, e)
		if ok {
			ok, fieldsLeft = in.deliverMessage(m, e.GetMessageData(), fieldsLeft, received, &delivered, terminations)
		}
		if !ok {
			in.transport.dropped.Add(1)
		}
	}
	for ; delivered > 0; delivered-- {
		select {
		case <-received:
		case <-in.Context().Done():
			return nil, in.Context().Err()
		case <-in.transport.closed:
			return nil, status.Error(codes.Unavailable, "closed")
		}
	}
	return terminations, nil
}

// An envelope is a message whose names were looked up in the tables of its frame.
type envelope struct {
	name, target string
	request      uint32     // the id of the request that it answers, 0 for none
	sender       *actor.PID // nil if it names none, or (on the side of Join) one elsewhere
}

// resolveEnvelope looks up the names of an envelope. It checks every index, because a peer wrote them,
// and reports false for a message to another actor than the peerAuthorizer, and for a sender at another
// address than the stream's.
func (in *inboundStream) resolveEnvelope(b *protoremote.MessageBatch, e *protoremote.MessageEnvelope) (envelope, bool) {
	if e.GetTarget() < 0 || int(e.GetTarget()) >= len(b.GetTargets()) ||
		e.GetTypeId() < 0 || int(e.GetTypeId()) >= len(b.GetTypeNames()) ||
		e.GetSender() < 0 || int(e.GetSender()) > len(b.GetSenders()) || e.GetSerializerId() != 0 {
		return envelope{}, false
	}
	// Names come from tables of the frame, so that a name of many messages travels once.
	m := envelope{name: b.GetTypeNames()[e.GetTypeId()], target: b.GetTargets()[e.GetTarget()], request: e.GetTargetRequestId()}
	if in.transport.authorizerID != "" && m.target != in.transport.authorizerID && m.name != "actor.Terminated" {
		return envelope{}, false
	}
	if e.GetSender() == 0 {
		return m, true
	}
	sender := b.GetSenders()[e.GetSender()-1]
	switch {
	// A new PID is built from the checked parts; other fields of the peer's are left behind.
	case in.isAtPeer(sender):
		m.sender = &actor.PID{Address: sender.GetAddress(), Id: sender.GetId(), RequestId: e.GetSenderRequestId()}
	case in.transport.authorizerID != "":
		return envelope{}, false
	}
	return m, true
}

// isAtPeer reports whether pid names an actor at the stream's address, so that a peer cannot make this side send
// messages to a third one.
func (in *inboundStream) isAtPeer(pid *actor.PID) bool {
	return pid != nil && in.binding != nil && pid.GetAddress() == in.binding.address && pid.GetId() != "" && len(pid.GetId()) <= maxID
}

// deliverMessage decodes a message and delivers it. fieldsLeft is the number of fields that the frame may still have;
// it reports false if the message must be dropped, and returns the new number. Each command adds one to delivered;
// each end of a watched actor is added to terminations.
func (in *inboundStream) deliverMessage(
	m envelope, data []byte, fieldsLeft int, received chan<- struct{}, delivered *int, terminations *protoremote.MessageBatch,
) (bool, int) {
	switch m.name {
	case "actor.Watch":
		// A watch needs a watcher at the peer's own address, and room among its watches.
		var w actor.Watch
		fieldsLeft, err := decodeBounded(&w, data, fieldsLeft)
		if err != nil || !in.isAtPeer(w.GetWatcher()) || !in.transport.registry.addWatcher(in.binding, watchKey{w.GetWatcher().GetId(), m.target}, w.GetWatcher()) {
			return false, fieldsLeft
		}
		in.transport.deliverWatch(m.target, &w)
		return true, fieldsLeft
	case "actor.Unwatch":
		var w actor.Unwatch
		fieldsLeft, err := decodeBounded(&w, data, fieldsLeft)
		if err != nil || !in.isAtPeer(w.GetWatcher()) || !in.transport.registry.removeWatcher(in.binding, watchKey{w.GetWatcher().GetId(), m.target}) {
			return false, fieldsLeft
		}
		in.transport.sendToLocal(m.target, &w)
		return true, fieldsLeft
	// The end of an actor is believed only if an actor here watches it. It is written anew for the library.
	case "actor.Terminated":
		var t actor.Terminated
		fieldsLeft, err := decodeBounded(&t, data, fieldsLeft)
		if err != nil || !in.isAtPeer(t.GetWho()) || !in.transport.registry.removeWatched(in.binding, watchKey{t.GetWho().GetId(), m.target}) {
			return false, fieldsLeft
		}
		clean, err := proto.Marshal(&actor.Terminated{Who: actor.NewPID(t.GetWho().GetAddress(), t.GetWho().GetId()), Why: t.GetWhy()})
		if err != nil {
			return false, fieldsLeft
		}
		terminations.Envelopes = append(terminations.Envelopes, &protoremote.MessageEnvelope{Target: int32(len(terminations.GetTargets())), MessageData: clean})
		terminations.Targets = append(terminations.Targets, m.target)
		return true, fieldsLeft
	}
	// The side of Join takes replies, the side of Serve commands.
	if in.transport.authorizerID == "" {
		return in.deliverReply(m, data, fieldsLeft)
	}
	return in.deliverCommand(m, data, fieldsLeft, received, delivered)
}

// deliverWatch gives a watch to an actor here. If there is no such actor, the library's dead letters answer with its
// end. A watch of the peerAuthorizer is one of the manager, whose end is not that of the actor: it stays in the registry.
func (w *peerTransport) deliverWatch(id string, watch *actor.Watch) {
	if id == w.authorizerID {
		if w.registry.hasEnded() {
			w.endWatched()
		}
		return
	}
	ref, _ := w.system.ProcessRegistry.GetLocal(id) // the dead letters if there is no such actor
	ref.SendSystemMessage(actor.NewPID(w.system.Address(), id), watch)
}

// deliverReply delivers an answer of a manager to the actor, or to the future, that asked.
func (in *inboundStream) deliverReply(m envelope, data []byte, fieldsLeft int) (bool, int) {
	msg := newMessage(m.name, kindAnswer)
	if msg == nil && m.name == "actor.DeadLetterResponse" {
		msg = &actor.DeadLetterResponse{}
	}
	if msg == nil {
		return false, fieldsLeft
	}
	fieldsLeft, err := decodeBounded(msg, data, fieldsLeft)
	if err != nil {
		return false, fieldsLeft
	}
	to := actor.NewPID(in.transport.system.Address(), m.target)
	// The id finds the future that waits, if the target is one.
	to.RequestId = m.request
	in.transport.system.Root.Send(to, &actor.MessageEnvelope{Message: msg, Sender: m.sender})
	return true, fieldsLeft
}

// deliverCommand gives a command to the peerAuthorizer. Of a command that is too large it decodes only the id, so
// that the peer can match the failure that it gets as a reply.
func (in *inboundStream) deliverCommand(m envelope, data []byte, fieldsLeft int, received chan<- struct{}, delivered *int) (bool, int) {
	msg := newMessage(m.name, kindCommand)
	if msg == nil {
		return false, fieldsLeft
	}
	c := peerCommand{identity: in.peer.identity, sender: m.sender, message: msg, received: received, size: len(data)}
	if limit := in.transport.cfg.MaxMessage; len(data) > limit {
		readCommandID(msg, data)
		c.refused, c.size = tooLargeError("the command", len(data), limit), 0
	} else {
		before := fieldsLeft
		var err error
		if fieldsLeft, err = decodeBounded(msg, data, fieldsLeft); err != nil {
			return false, fieldsLeft
		}
		c.size += (before - fieldsLeft) * fieldCost // a decoded field takes far more memory than its bytes
	}
	*delivered++
	in.transport.system.Root.Send(in.transport.authorizerPID(), c)
	return true, fieldsLeft
}

// readCommandID reads the call_id or request_id of a command, by which its peer knows the reply, and nothing else. A
// broken message leaves the id empty.
func readCommandID(to proto.Message, raw []byte) {
	fields := to.ProtoReflect().Descriptor().Fields()
	for len(raw) > 0 {
		// The fields are skipped without being decoded, whatever their size.
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
