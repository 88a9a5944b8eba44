package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/inprocess"
)

// A heardRequest is one request that a server of a test got.
type heardRequest struct {
	id, method string
	params     []byte
}

// text returns the text at a path of the params.
func (r heardRequest) text(path ...string) string {
	value := r.params
	for _, name := range path {
		value = rawjson.Member(value, name)
	}
	text, _ := rawjson.Text(value)
	return text
}

// answeredLater stands for the answer of a request that its server answers by itself.
const answeredLater = "later"

// serveRequests answers the requests on a connection with the results that resultOf returns; an empty one is an empty object.
func serveRequests(ctx context.Context, peer inprocess.Peer, resultOf func(r heardRequest) string) error {
	for {
		body, err := peer.Read(ctx)
		if err != nil {
			return err
		}
		r := heardRequest{id: string(rawjson.Member(body, "id")), params: rawjson.Member(body, "params")}
		if r.method, _ = rawjson.Text(rawjson.Member(body, "method")); r.id == "" {
			continue
		}
		switch result := resultOf(r); result {
		case answeredLater:
		case "":
			err = writeResult(ctx, peer, r.id, "{}")
		default:
			err = writeResult(ctx, peer, r.id, result)
		}
		if err != nil {
			return err
		}
	}
}

func writeResult(ctx context.Context, peer inprocess.Peer, id, result string) error {
	return peer.Write(ctx, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, id, result))
}

// crashAt makes a server one that crashes at a value from crash, and that cannot be started while it is away.
func crashAt(server func(context.Context, inprocess.Peer) error, away *atomic.Bool, crash <-chan struct{}) func(context.Context, inprocess.Peer) error {
	return func(ctx context.Context, peer inprocess.Peer) error {
		if away.Load() {
			return errors.New("the server is away")
		}
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() {
			select {
			case <-crash:
				cancel()
			case <-ctx.Done():
			}
		}()
		return server(ctx, peer)
	}
}
