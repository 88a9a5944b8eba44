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
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/mcpvisor/mcpvisor/messages"
)

var errEndOfInput = errors.New("the input has ended")

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
	// rest holds the text that excerpt has not shown yet.
	rest []rune
}

func (t *talk) print(format string, args ...any) { fmt.Fprintf(t.out, format, args...) }

// quote shows a text of a server, set off so that nobody takes it for our own words.
func (t *talk) quote(text string) {
	for l := range strings.Lines(strings.TrimRight(messages.Printable(text), "\n") + "\n") {
		t.print("  | %s\n", strings.TrimRight(l, "\n"))
	}
}

// moreText is how much more of a long text is shown at a time, in characters.
const moreText = 20_000

// excerpt shows the beginning of a text of a server or a model, set off and in one line, and says so if there is more:
// choose offers it then.
func (t *talk) excerpt(text string, most int) {
	shown := []rune(messages.Line(text, 0))
	if len(shown) <= most {
		t.quote(string(shown))
		return
	}
	t.quote(string(shown[:most]))
	t.rest = shown[most:]
	t.print("  These are the first %s of %s characters: [m]ore shows what follows.\n", grouped(most), grouped(len(shown)))
}

const (
	// passageText and passageLines bound how much of a server's words is shown at once: who asks must stay on the screen.
	passageText  = 4000
	passageLines = 40
)

// passage shows what a server says, set off, in its own lines, and of a long text the beginning: choose offers the rest then.
func (t *talk) passage(text string) {
	text = strings.TrimRight(messages.Printable(text), "\n")
	end, lines := 0, 1
	for i, r := range text {
		if r == '\n' {
			lines++
		}
		if i >= passageText || lines > passageLines {
			t.quote(text[:end])
			t.rest = []rune(text[end:])
			t.print("  That is not all: %s characters follow. [m]ore shows them.\n", grouped(len(t.rest)))
			return
		}
		end = i + utf8.RuneLen(r)
	}
	t.quote(text)
}

// more shows what follows.
func (t *talk) more() {
	n := min(len(t.rest), moreText)
	t.quote(string(t.rest[:n]))
	if t.rest = t.rest[n:]; len(t.rest) > 0 {
		t.print("  %s characters follow: [m]ore shows them.\n", grouped(len(t.rest)))
	} else {
		t.print("  This was the end.\n")
	}
}

// grouped is a number with commas.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
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
		if len(t.rest) > 0 && got != "" && strings.HasPrefix("more", strings.ToLower(got)) {
			t.more()
			continue
		}
		for _, w := range words {
			if got != "" && strings.HasPrefix(w, strings.ToLower(got)) {
				return w, nil
			}
		}
		if len(t.rest) > 0 {
			t.print("  Type %s.\n", alternatives(slices.Concat([]string{"more"}, words)))
		} else {
			t.print("  Type %s.\n", alternatives(words))
		}
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
