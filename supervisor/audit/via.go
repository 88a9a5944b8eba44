package audit

import (
	"context"
	"os"
	"os/user"
	"strconv"
	"sync"
)

type viaKey struct{}

type viaOrigin struct{ via, sender string }

// WithVia says by which way something is asked of a manager with the context, and from whom the message is, if it is one:
// words for Record.Via and Record.From.
func WithVia(ctx context.Context, via, from string) context.Context {
	return context.WithValue(ctx, viaKey{}, viaOrigin{via, from})
}

// ViaOf returns what WithVia gave, and "program" without.
func ViaOf(ctx context.Context) (via, from string) {
	if o, ok := ctx.Value(viaKey{}).(viaOrigin); ok {
		return o.via, o.sender
	}
	return "program", ""
}

type peerKey struct{}

type peerProcess struct {
	pid     int
	program string
}

// WithPeer says which process asks over a socket: values for Record.PeerPID and Record.PeerProgram.
func WithPeer(ctx context.Context, pid int, program string) context.Context {
	return context.WithValue(ctx, peerKey{}, peerProcess{pid, program})
}

// PeerOf returns what WithPeer gave; zero values without.
func PeerOf(ctx context.Context) (pid int, program string) {
	p, _ := ctx.Value(peerKey{}).(peerProcess)
	return p.pid, p.program
}

// User is the name of the user whose process this is, or the number if there is no name: who types commands, and who can reach
// the control socket.
var User = sync.OnceValue(func() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "uid " + strconv.Itoa(os.Getuid())
})
