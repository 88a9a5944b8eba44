package audit

import (
	"context"
	"os"
	"os/user"
	"strconv"
	"sync"
)

// viaKey finds the viaOrigin in a context.
type viaKey struct{}

type viaOrigin struct{ via, sender string }

// WithVia returns a context that says by which way a request came to the manager, and which actor sent it, if it is a message:
// values for Record.Via and Record.From.
func WithVia(ctx context.Context, via, from string) context.Context {
	return context.WithValue(ctx, viaKey{}, viaOrigin{via, from})
}

// ViaOf returns the values of WithVia, and "program" without them.
func ViaOf(ctx context.Context) (via, from string) {
	// Without a mark the program itself made the call.
	if o, ok := ctx.Value(viaKey{}).(viaOrigin); ok {
		return o.via, o.sender
	}
	return "program", ""
}

type peerKey struct{}

// peerProcess is the process at the other end of a socket, as the system reports it.
type peerProcess struct {
	pid     int
	program string
}

// WithPeer returns a context with the process at the other end of a socket: values for Record.PeerPID and Record.PeerProgram.
func WithPeer(ctx context.Context, pid int, program string) context.Context {
	return context.WithValue(ctx, peerKey{}, peerProcess{pid, program})
}

// PeerOf returns the values of WithPeer; zero values without them.
func PeerOf(ctx context.Context) (pid int, program string) {
	p, _ := ctx.Value(peerKey{}).(peerProcess)
	return p.pid, p.program
}

// User returns the name of the user who runs this process, or the user's number if there is no name. Commands, and requests over
// the control socket, can only come from this user.
var User = sync.OnceValue(func() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "uid " + strconv.Itoa(os.Getuid())
})
