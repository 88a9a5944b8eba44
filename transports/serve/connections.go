package serve

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// connections bounds the connections of a server. Those on which nobody is let in yet, and those that wait for their next request, stand in a
// list each, the oldest in front: they give way to new ones. So a peer that opens connections and is silent, sends half of a request, or has no
// token, displaces its own. mu guards everything.
type connections struct {
	most int

	mu     sync.Mutex
	places map[net.Conn]connPlace
	silent list.List
	idle   list.List
}

// connPlace is where a connection stands; in no list if it is in use.
type connPlace struct {
	in *list.List
	at *list.Element
}

// connKey leads from the context of a request to its connection.
type connKey struct{}

// A countedConn is one connection, for the requests that come on it.
type countedConn struct {
	all  *connections
	conn net.Conn
}

// withConn is for http.Server.ConnContext.
func (c *connections) withConn(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, countedConn{c, conn})
}

// occupyConnection records that the connection of a request is in use, from here until the request has its answer.
func occupyConnection(r *http.Request) {
	if s, ok := r.Context().Value(connKey{}).(countedConn); ok {
		s.all.occupyConn(s.conn)
	}
}

func (c *connections) occupyConn(conn net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p, known := c.places[conn]; known && p.in != nil {
		p.in.Remove(p.at)
		c.places[conn] = connPlace{}
	}
}

// noteState is for http.Server.ConnState.
func (c *connections) noteState(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	displaced := c.moveConn(conn, state)
	c.mu.Unlock()
	if displaced == nil {
		return
	}
	// This runs in the loop that accepts connections. The end of a secured one would wait for its peer.
	if secured, ok := displaced.(interface{ NetConn() net.Conn }); ok {
		displaced = secured.NetConn()
	}
	_ = displaced.Close() // its server notices, and forgets it
}

// moveConn puts a connection where its state belongs, and returns the one that must give way. The caller holds mu.
func (c *connections) moveConn(conn net.Conn, state http.ConnState) (displaced net.Conn) {
	if c.places == nil {
		c.places = map[net.Conn]connPlace{}
	}
	p, known := c.places[conn]
	if !known && state != http.StateNew {
		return nil // it was displaced; net/http calls half of a request an active connection at its end
	}
	if p.in != nil {
		p.in.Remove(p.at)
	}
	switch state {
	case http.StateNew:
		if len(c.places) >= c.most {
			if displaced = c.takeOldest(); displaced == nil {
				displaced = conn
			}
		}
		c.places[conn] = connPlace{&c.silent, c.silent.PushBack(conn)}
	case http.StateActive: // the head of a request is there
		c.places[conn] = connPlace{&c.silent, c.silent.PushBack(conn)}
	case http.StateIdle:
		c.places[conn] = connPlace{&c.idle, c.idle.PushBack(conn)}
	default: // it has ended
		delete(c.places, conn)
	}
	return displaced
}

// takeOldest takes out the connection that is the first to give way.
func (c *connections) takeOldest() net.Conn {
	for _, from := range []*list.List{&c.silent, &c.idle} {
		if first := from.Front(); first != nil {
			conn := from.Remove(first).(net.Conn)
			delete(c.places, conn)
			return conn
		}
	}
	return nil
}
