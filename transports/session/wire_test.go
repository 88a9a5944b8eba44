package session_test

import (
	"context"
	"fmt"
	"sync"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
)

// wire is a transport and its only connection, in memory. The test is the server: it reads the sent messages and
// decides which ones are received. The zero value is ready.
type wire struct {
	// onSend decides what happens to a message that was sent; nil: it is Written. It runs on the sender's goroutine.
	onSend func(ctx context.Context, m transports.Message) (transports.Delivery, error)
	// onDial runs before Dial returns.
	onDial func(sink transports.Sink) error
	// onClose runs in the first Close instead of the end of the connection.
	onClose func()
	// kind is the kind that the transport reports, SDK if empty.
	kind messages.TransportKind

	mu         sync.Mutex
	sink       transports.Sink
	sent       []transports.Message
	negotiated []string
	ended      bool
	released   chan struct{} // made by Dial
}

func (w *wire) Kind() messages.TransportKind {
	if w.kind != "" {
		return w.kind
	}
	return messages.SDK
}

func (w *wire) Dial(ctx context.Context, sink transports.Sink) (transports.Conn, error) {
	w.sink, w.released = sink, make(chan struct{})
	if w.onDial != nil {
		if err := w.onDial(sink); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *wire) Send(ctx context.Context, m transports.Message) (transports.Delivery, error) {
	w.mu.Lock()
	if w.ended {
		w.mu.Unlock()
		return transports.NotWritten, &transports.Error{Class: messages.ClassCanceled, Text: "the connection is closed"}
	}
	copied := m
	copied.Body = append([]byte(nil), m.Body...)
	w.sent = append(w.sent, copied)
	w.mu.Unlock()
	if w.onSend != nil {
		return w.onSend(ctx, m)
	}
	return transports.Written, nil
}

func (w *wire) Negotiated(version string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.negotiated = append(w.negotiated, version)
}

func (w *wire) Close(ctx context.Context) error {
	if w.onClose != nil {
		w.onClose()
	}
	w.end(&transports.Error{Class: messages.ClassCanceled, Text: "the connection was closed"})
	return nil
}

// end is the death of the connection.
func (w *wire) end(err error) {
	w.mu.Lock()
	first := !w.ended
	w.ended = true
	w.mu.Unlock()
	if first {
		w.sink.Down(err)
		close(w.released)
	} else {
		<-w.released
	}
}

func (w *wire) Released() <-chan struct{} { return w.released }

func (w *wire) Info() transports.Info { return transports.Info{PID: 42} }

// receive hands a message to the session; the session owns the bytes.
func (w *wire) receive(text string) { w.sink.Message([]byte(text)) }

// declareTasks answers initialize as a server of the legacy era that runs tasks.
func (w *wire) declareTasks(id int64) {
	w.receive(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{}},`+
		`"serverInfo":{"name":"s","version":"1"}}}`, id))
}

// takeSent returns what was sent since the last call.
func (w *wire) takeSent() []transports.Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	sent := w.sent
	w.sent = nil
	return sent
}
