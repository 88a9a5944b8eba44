package remote

import (
	"context"
	"io"
	"log/slog"
	"testing"
	"time"

	"crypto/x509"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

type idleStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s idleStream) Context() context.Context { return s.ctx }

// A panic of the library's reader costs the stream, and the stream's binding is released.
func TestAPanicOfTheReaderCostsItsStream(t *testing.T) {
	quiet := actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) })
	system := actor.NewActorSystem(quiet)
	defer system.Shutdown()
	w := newPeerTransport(system, Config{}, Name)
	close(w.ready)
	ctx := peer.NewContext(t.Context(), &peer.Peer{AuthInfo: peerInfo{identity: "a", cert: &x509.Certificate{}}})
	err := w.serveStream(nil, idleStream{ctx: ctx}, nil, func(_ any, stream grpc.ServerStream) error {
		stream.(*inboundStream).binding = w.registry.bindAddress("x:1", "a", time.Now().Add(time.Hour), true)
		panic("as the library does")
	})
	if status.Code(err) != codes.Internal {
		t.Errorf("%v", err)
	}
	if w.registry.ownerOf("x:1") != "" {
		t.Error("the stream is still open")
	}
}
