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

// lineReader gives what a person types, a line at a time, to whoever waits for one. A read of a terminal cannot be taken
// back: the one that was begun serves the next question.
type lineReader struct {
	in   io.Reader
	once sync.Once
	next chan string // closed at the end of the input
}

func (l *lineReader) startReader() {
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

// dropTyped forgets what was typed before the question was there: it answers nothing that could be seen.
func (l *lineReader) dropTyped() {
	flushInput(l.in)
	l.startReader()
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

func (l *lineReader) readLine(ctx context.Context) (string, error) {
	l.startReader()
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

// conversation is a conversation about one question.
type conversation struct {
	ctx   context.Context
	lines *lineReader
	out   io.Writer
	// unshownText holds the text that excerpt has not shown yet.
	unshownText []rune
}

func (t *conversation) print(format string, args ...any) { fmt.Fprintf(t.out, format, args...) }

// printQuoted shows a text of a server, set off so that nobody takes it for our own words.
func (t *conversation) printQuoted(text string) {
	for l := range strings.Lines(strings.TrimRight(messages.Printable(text), "\n") + "\n") {
		t.print("  | %s\n", strings.TrimRight(l, "\n"))
	}
}

// moreText is how much more of a long text is shown at a time, in characters.
const moreText = 20_000

// printExcerpt shows the beginning of a text of a server or a model, set off and in one line, and says so if there is more:
// choose offers it then.
func (t *conversation) printExcerpt(text string, most int) {
	shown := []rune(messages.Line(text, 0))
	if len(shown) <= most {
		t.printQuoted(string(shown))
		return
	}
	t.printQuoted(string(shown[:most]))
	t.unshownText = shown[most:]
	t.print("  These are the first %s of %s characters: [m]ore shows what follows.\n", withCommas(most), withCommas(len(shown)))
}

const (
	// passageText and passageLines bound how much of a server's words is shown at once: who asks must stay on the screen.
	passageText  = 4000
	passageLines = 40
)

// printPassage shows what a server says, set off, in its own lines, and of a long text the beginning: choose offers the rest then.
func (t *conversation) printPassage(text string) {
	text = strings.TrimRight(messages.Printable(text), "\n")
	end, lines := 0, 1
	for i, r := range text {
		if r == '\n' {
			lines++
		}
		if i >= passageText || lines > passageLines {
			t.printQuoted(text[:end])
			t.unshownText = []rune(text[end:])
			t.print("  That is not all: %s characters follow. [m]ore shows them.\n", withCommas(len(t.unshownText)))
			return
		}
		end = i + utf8.RuneLen(r)
	}
	t.printQuoted(text)
}

// printMore shows what follows.
func (t *conversation) printMore() {
	n := min(len(t.unshownText), moreText)
	t.printQuoted(string(t.unshownText[:n]))
	if t.unshownText = t.unshownText[n:]; len(t.unshownText) > 0 {
		t.print("  %s characters follow: [m]ore shows them.\n", withCommas(len(t.unshownText)))
	} else {
		t.print("  This was the end.\n")
	}
}

// withCommas is a number with commas.
func withCommas(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// readLine asks for a line.
func (t *conversation) readLine(prompt string) (string, error) {
	t.print("%s", prompt)
	text, err := t.lines.readLine(t.ctx)
	return strings.TrimSpace(text), err
}

// chooseWord asks until the answer is one of the words, or the beginning of one. There is no answer by default: consent is
// typed.
func (t *conversation) chooseWord(prompt string, words ...string) (string, error) {
	for {
		got, err := t.readLine(prompt + " ")
		if err != nil {
			return "", err
		}
		if len(t.unshownText) > 0 && got != "" && strings.HasPrefix("more", strings.ToLower(got)) {
			t.printMore()
			continue
		}
		for _, w := range words {
			if got != "" && strings.HasPrefix(w, strings.ToLower(got)) {
				return w, nil
			}
		}
		if len(t.unshownText) > 0 {
			t.print("  Type %s.\n", joinAlternatives(slices.Concat([]string{"more"}, words)))
		} else {
			t.print("  Type %s.\n", joinAlternatives(words))
		}
	}
}

func joinAlternatives(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// startDetached starts a program that lives on by itself. It is not told our own variables: one may be a passphrase.
func startDetached(command string, args ...string) error {
	cmd := exec.Command(command, args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "MCPVISOR_") })
	detachProcess(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // it is reaped, whatever it says
	return nil
}
