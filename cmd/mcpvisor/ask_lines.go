package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

var (
	errNobodyAnswers = errors.New("nobody answers")
	errEndOfInput    = errors.New("the input has ended")
)

// lines gives what a person types, a line at a time, to whoever waits for one. A read of a terminal cannot be taken
// back: the one that was begun serves the next question.
type lines struct {
	in   io.Reader
	once sync.Once
	next chan string // closed at the end of the input
}

func (l *lines) begin() {
	l.once.Do(func() {
		l.next = make(chan string)
		go func() { // it ends with the input, or with the process
			defer close(l.next)
			in := bufio.NewReader(l.in)
			for {
				line, err := in.ReadString('\n')
				if err != nil && line == "" {
					return
				}
				l.next <- strings.TrimRight(line, "\r\n")
			}
		}()
	})
}

// flush forgets what was typed before the question was there: it answers nothing that could be seen.
func (l *lines) flush() {
	flushInput(l.in)
	l.begin()
	t := time.NewTimer(20 * time.Millisecond) // for the line that the reader holds
	defer t.Stop()
	for {
		select {
		case _, ok := <-l.next:
			if !ok {
				return
			}
		case <-t.C:
			return
		}
	}
}

func (l *lines) read(ctx context.Context) (string, error) {
	l.begin()
	select {
	case line, ok := <-l.next:
		if !ok {
			return "", errEndOfInput
		}
		return line, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// talk is a conversation about one question.
type talk struct {
	ctx   context.Context
	lines *lines
	out   io.Writer
}

func (t *talk) print(format string, args ...any) { fmt.Fprintf(t.out, format, args...) }

// quote shows a text of a server, set off so that nobody takes it for our own words.
func (t *talk) quote(text string) {
	for l := range strings.Lines(strings.TrimRight(messages.Printable(text), "\n") + "\n") {
		t.print("  | %s\n", strings.TrimRight(l, "\n"))
	}
}

// line asks for a line.
func (t *talk) line(prompt string) (string, error) {
	t.print("%s", prompt)
	text, err := t.lines.read(t.ctx)
	return strings.TrimSpace(text), err
}

// choose asks until the answer is one of the words, or the beginning of one. There is no answer by default: consent is
// typed.
func (t *talk) choose(prompt string, words ...string) (string, error) {
	for {
		got, err := t.line(prompt + " ")
		if err != nil {
			return "", err
		}
		for _, w := range words {
			if got != "" && strings.HasPrefix(w, strings.ToLower(got)) {
				return w, nil
			}
		}
		t.print("  Type %s.\n", alternatives(words))
	}
}

func alternatives(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// startDetached starts a program that lives on by itself. It is not told our own variables: one may be a passphrase.
func startDetached(command string, args ...string) error {
	cmd := exec.Command(command, args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "MCPVISOR_") })
	detach(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // it is reaped, whatever it says
	return nil
}
