package session_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

const agreesToTools = `{"method":"notifications/subscriptions/acknowledged","params":{"_meta":{` +
	`"io.modelcontextprotocol/subscriptionId":%d},"notifications":{"toolsListChanged":true}}}`

// TestChangeDuringFirstList guards against a bug: a change of the tools between a server's answer to the first list
// and its agreement to announce changes was missed, if the agreement came before the last page.
func TestChangeDuringFirstList(t *testing.T) {
	changed := make(chan struct{}, 8)
	w, listen := &wire{}, atomic.Int64{}
	w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
		switch m.Method {
		case "server/discover":
			w.receive(fmt.Sprintf(`{"id":%d,"result":{"supportedVersions":["2026-07-28"],`+
				`"capabilities":{"tools":{"listChanged":true}}}}`, m.ID))
		case "subscriptions/listen":
			listen.Store(m.ID)
		case "tools/list":
			if m.ID == listen.Load()+1 { // the tools change after this page, and before what follows
				w.receive(fmt.Sprintf(`{"id":%d,"result":{"tools":[],"nextCursor":"2"}}`, m.ID))
				break
			}
			w.receive(fmt.Sprintf(agreesToTools, listen.Load()))
			w.receive(fmt.Sprintf(`{"id":%d,"result":{"tools":[]}}`, m.ID))
		}
		return transports.Written, nil
	}
	synctest.Test(t, func(t *testing.T) {
		changed = make(chan struct{}, 8)
		s, err := session.Dial(t.Context(), w, session.Config{
			Era: messages.EraModern, OnToolsChanged: func() { changed <- struct{}{} },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close(context.Background()); <-s.Released() }()
		if _, err := s.Handshake(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // the stream is asked for
		if _, err := s.ListTools(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if len(changed) != 1 {
			t.Errorf("told %d times, want once", len(changed))
		}
	})
}

// TestStreamOutlivesMissingAddress guards against a bug: a balancer that had no server at the address for a moment
// (404) when a stream was opened again was taken for a server that does not know the method, and all later changes
// were missed.
func TestStreamOutlivesMissingAddress(t *testing.T) {
	var listens, notified atomic.Int32
	synctest.Test(t, func(t *testing.T) {
		w := &wire{kind: messages.HTTP}
		w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
			switch m.Method {
			case "server/discover":
				w.receive(fmt.Sprintf(`{"id":%d,"result":{"supportedVersions":["2026-07-28"],`+
					`"capabilities":{"tools":{"listChanged":true}}}}`, m.ID))
			case "subscriptions/listen":
				if listens.Add(1) == 2 {
					return transports.Written, &transports.Error{Class: messages.ClassNetwork, Status: http.StatusNotFound,
						Text: "nothing is here"}
				}
				w.receive(fmt.Sprintf(agreesToTools, m.ID))
				if listens.Load() == 1 {
					return transports.MaybeWritten, &transports.Error{Class: messages.ClassNetwork, Text: "the stream broke"}
				}
			}
			return transports.Written, nil
		}
		s, err := session.Dial(t.Context(), w, session.Config{
			Era: messages.EraModern, OnToolsChanged: func() { notified.Add(1) },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = s.Close(context.Background()); <-s.Released() }()
		if _, err := s.Handshake(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if listens.Load() != 3 || notified.Load() != 1 {
			t.Errorf("asked %d times and told %d times, want 3 and 1", listens.Load(), notified.Load())
		}
	})
}

// TestPausesAreDrawn: the random part of a pause comes from Config.Rand, so that a program can repeat it.
func TestPausesAreDrawn(t *testing.T) {
	for _, drawn := range []float64{0, 0.25, 0.5} {
		synctest.Test(t, func(t *testing.T) {
			var attempts []time.Time
			w := &wire{kind: messages.HTTP}
			w.onSend = func(_ context.Context, m transports.Message) (transports.Delivery, error) {
				switch m.Method {
				case "server/discover":
					w.receive(fmt.Sprintf(`{"id":%d,"result":{"supportedVersions":["2026-07-28"],`+
						`"capabilities":{"tools":{"listChanged":true}}}}`, m.ID))
				case "subscriptions/listen":
					attempts = append(attempts, time.Now())
					w.receive(fmt.Sprintf(agreesToTools, m.ID))
					if len(attempts) == 1 {
						return transports.MaybeWritten, &transports.Error{Class: messages.ClassNetwork, Text: "the stream broke"}
					}
				}
				return transports.Written, nil
			}
			s, err := session.Dial(t.Context(), w, session.Config{
				Era: messages.EraModern, Rand: func() float64 { return drawn }, OnToolsChanged: func() {},
			})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close(context.Background()); <-s.Released() }()
			if _, err := s.Handshake(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			want := 500*time.Millisecond + time.Duration(drawn*float64(500*time.Millisecond))
			if len(attempts) != 2 || attempts[1].Sub(attempts[0]) != want {
				t.Errorf("drawn %v: asked at %v, want a pause of %v", drawn, attempts, want)
			}
		})
	}
}
