package serve

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// connections bounds the connections of a server. Those that have sent no whole request yet, and those that wait for their next, stand in
// a list each, the oldest in front: they give way to new ones. So a peer that opens connections and is silent displaces its own. mu
// guards everything.
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
	if p := c.places[conn]; p.in != nil {
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
	case http.StateIdle:
		c.places[conn] = connPlace{&c.idle, c.idle.PushBack(conn)}
	case http.StateActive:
		c.places[conn] = connPlace{}
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
