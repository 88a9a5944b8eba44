package remote

import (
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/asynkron/protoactor-go/actor"
	protoremote "github.com/asynkron/protoactor-go/remote"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/mcpvisor/mcpvisor/messages"
)

// wire is protoactor's remote with a filter in front of its reader.
type wire struct {
	remote  *protoremote.Remote
	dropped atomic.Int64
}

// listen starts protoactor's remote in the system. target, if not empty, is the only actor that peers may name.
func listen(system *actor.ActorSystem, cfg Config, target string) (w *wire, err error) {
	// The library panics when it cannot listen.
	defer func() {
		if r := recover(); r != nil {
			w, err = nil, &messages.Error{Op: "remote", Class: messages.ClassInvalid,
				Text: fmt.Sprintf("cannot listen on %s: %v", cfg.address(), r), Fix: "choose another host or port"}
		}
	}()
	w = &wire{}
	options := []protoremote.ConfigOption{
		protoremote.WithServerOptions(
			grpc.Creds(credentials.NewTLS(cfg.serverTLS())),
			grpc.WaitForHandlers(true),
			grpc.MaxRecvMsgSize(cfg.MaxMessage+frameSlack),
			grpc.ChainStreamInterceptor(w.filter(target)),
			grpc.ChainUnaryInterceptor(refuseUnary),
		),
		protoremote.WithDialOptions(grpc.WithTransportCredentials(credentials.NewTLS(cfg.clientTLS()))),
		protoremote.WithCallOptions(grpc.MaxCallSendMsgSize(cfg.MaxMessage + frameSlack)),
	}
	if cfg.AdvertisedHost != "" {
		options = append(options, protoremote.WithAdvertisedHost(cfg.AdvertisedHost))
	}
	config := protoremote.Configure(cfg.Host, cfg.Port, options...)
	config.MaxRetryCount = 1 // more leaks goroutines for every peer that cannot be reached
	w.remote = protoremote.NewRemote(system, config)
	w.remote.Start()
	return w, nil
}

// close stops listening and waits for the readers. The library's own order tells its readers to stop while they read, which
// is a data race: so the connections end first, and the rest when nobody reads any more.
func (w *wire) close() {
	w.remote.Shutdown(false)
	w.remote.Shutdown(true)
}

// filter lets only our own messages through, and only to the target.
func (w *wire) filter(target string) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		return next(srv, &filtered{ServerStream: stream, target: target, dropped: &w.dropped})
	}
}

type filtered struct {
	grpc.ServerStream
	target  string
	dropped *atomic.Int64
}

// RecvMsg implements grpc.ServerStream.
func (f *filtered) RecvMsg(m any) error {
	if err := f.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	msg, ok := m.(*protoremote.RemoteMessage)
	if !ok {
		return nil
	}
	batch := msg.GetMessageBatch()
	if batch == nil {
		return nil
	}
	kept := batch.GetEnvelopes()[:0]
	for _, e := range batch.GetEnvelopes() {
		if f.allowed(batch, e) {
			kept = append(kept, e)
		} else {
			f.dropped.Add(1)
		}
	}
	batch.Envelopes = kept
	return nil
}

// allowed checks every index before it is used: the reader behind this filter does not.
func (f *filtered) allowed(b *protoremote.MessageBatch, e *protoremote.MessageEnvelope) bool {
	if e.GetTarget() < 0 || int(e.GetTarget()) >= len(b.GetTargets()) ||
		e.GetTypeId() < 0 || int(e.GetTypeId()) >= len(b.GetTypeNames()) ||
		e.GetSender() < 0 || int(e.GetSender()) > len(b.GetSenders()) || e.GetSerializerId() != 0 {
		return false
	}
	name := b.GetTypeNames()[e.GetTypeId()]
	if name == "actor.Terminated" { // a watched peer has ended
		return true
	}
	if f.target != "" && b.GetTargets()[e.GetTarget()] != f.target {
		return false
	}
	return strings.HasPrefix(name, "mcpvisor.") || name == "actor.Watch" || name == "actor.Unwatch" ||
		f.target == "" && name == "actor.DeadLetterResponse"
}
