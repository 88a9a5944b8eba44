package web

import (
	"io"
	"net/http"
	"strconv"

	"github.com/mcpvisor/mcpvisor/test/servers"
)

// Answers serves by streamable HTTP what answers single messages; nil is the answer to a notification. It has a session, which it
// does not check, and no stream of its own.
func Answers(answer func(msg []byte) []byte) http.Handler {
	return serveAnswers(answer, func(w http.ResponseWriter, answer []byte) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		_, _ = w.Write(answer)
	})
}

// EventAnswers is Answers with each answer as a stream of one event, which is flushed as by servers that may have more to send.
func EventAnswers(answer func(msg []byte) []byte) http.Handler {
	return serveAnswers(answer, func(w http.ResponseWriter, answer []byte) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: message\ndata: ")
		_, _ = w.Write(answer)
		_, _ = io.WriteString(w, "\n\n")
		_ = http.NewResponseController(w).Flush()
	})
}

// serveAnswers is either with a way to write an answer.
func serveAnswers(answer func(msg []byte) []byte, write func(w http.ResponseWriter, answer []byte)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodPost:
		case http.MethodDelete:
			return
		default:
			w.Header().Set("Allow", "POST, DELETE")
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		got := answer(body)
		if got == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		if servers.IsInitialize(body) {
			w.Header().Set("Mcp-Session-Id", "fixed")
		}
		write(w, got)
	})
}
