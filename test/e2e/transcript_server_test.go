package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const scriptedRole = "e2e-scripted"

// A scripted server plays the rules of a transcript and writes down every byte that it is sent, and how it was ended.
//
//	on METHOD [@N|#N]   what follows is done for each message of that method, of the Nth process alone, or for the Nth alone
//	on answer ID        the same for the answer to the server's own request of that id; $id is that of the last tools/call
//	  < LINE            writes a line; $id is the id of the message
//	  stderr TEXT | exit N | close (its output)
//	ignores eof | ignores SIGTERM
func init() {
	roles[scriptedRole] = func(args []string) int {
		s := &scriptedServer{rules: map[string][]string{}, seen: map[string]int{}}
		record, err := os.OpenFile(args[1], os.O_APPEND|os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return 70
		}
		s.record = record
		before, err := os.ReadFile(args[1])
		if err != nil {
			return 70
		}
		s.process = bytes.Count(before, []byte("--- started")) + 1
		script, err := os.ReadFile(args[0])
		if err != nil {
			return 70
		}
		s.readRules(string(script))
		return s.runScript()
	}
}

type scriptedServer struct {
	record  *os.File
	process int
	call    string              // the id of the last tools/call
	rules   map[string][]string // by "METHOD", and "METHOD @N" and "METHOD #N" which go first
	seen    map[string]int      // messages by method
	ignored map[string]bool
}

func (s *scriptedServer) readRules(script string) {
	s.ignored = map[string]bool{}
	var on string
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "  "):
			s.rules[on] = append(s.rules[on], strings.TrimSpace(line))
		case strings.HasPrefix(line, "on "):
			on = strings.TrimPrefix(line, "on ")
			s.rules[on] = nil
		case strings.HasPrefix(line, "ignores "):
			s.ignored[strings.TrimPrefix(line, "ignores ")] = true
		default:
			fmt.Fprintln(os.Stderr, "what is", line)
			os.Exit(64)
		}
	}
}

// appendRecord appends to the record. One write is one piece: nothing comes between.
func (s *scriptedServer) appendRecord(b []byte) {
	if _, err := s.record.Write(b); err != nil {
		os.Exit(70)
	}
}

func (s *scriptedServer) runScript() int {
	s.appendRecord([]byte("--- started\n"))
	terms := make(chan os.Signal, 1)
	signal.Notify(terms, syscall.SIGTERM)
	go func() {
		for range terms {
			s.appendRecord([]byte("--- SIGTERM\n"))
			if !s.ignored["SIGTERM"] {
				os.Exit(0)
			}
		}
	}()
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		s.appendRecord(line)
		if err != nil {
			if err == io.EOF {
				s.appendRecord([]byte("--- input closed\n"))
			}
			if s.ignored["eof"] {
				time.Sleep(2 * bound)
			}
			return 0
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		switch {
		case json.Unmarshal(line, &m) != nil:
		case m.Method != "":
			if m.Method == "tools/call" {
				s.call = string(m.ID)
			}
			s.answerRequest(m.Method, string(m.ID))
		default: // the answer to a question of the server, behind which it goes on with the call
			s.answerRequest("answer "+string(m.ID), s.call)
		}
	}
}

func (s *scriptedServer) answerRequest(method, id string) {
	s.seen[method]++
	actions, ok := s.rules[fmt.Sprintf("%s @%d", method, s.process)]
	if !ok {
		actions, ok = s.rules[fmt.Sprintf("%s #%d", method, s.seen[method])]
	}
	if !ok {
		actions = s.rules[method]
	}
	for _, action := range actions {
		verb, rest, _ := strings.Cut(action, " ")
		switch verb {
		case "<":
			fmt.Println(strings.ReplaceAll(rest, "$id", id))
		case "stderr":
			fmt.Fprintln(os.Stderr, rest)
		case "close":
			os.Stdout.Close()
		case "exit":
			code, err := strconv.Atoi(rest)
			if err != nil {
				os.Exit(64)
			}
			os.Exit(code)
		default:
			os.Exit(64)
		}
	}
}
