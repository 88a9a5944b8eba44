package ask

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

// ErrEndOfInput ends a conversation whose standard input was closed; the question then counts as cancelled.
var ErrEndOfInput = errors.New("the input has ended")

// lineReader gives what the person types, one line at a time, to the conversation that has the terminal. A read of a terminal
// cannot be cancelled, therefore one goroutine reads for the whole run: a read that a cancelled question began serves the next
// one.
type lineReader struct {
	in   io.Reader
	once sync.Once
	next chan string // unbuffered: the reader holds at most one line; closed at the end of the input
}

// startReader starts the reading goroutine at the first question, so that commands which ask nothing leave standard input
// alone.
func (l *lineReader) startReader() {
	l.once.Do(func() {
		l.next = make(chan string)
		go func() { // the goroutine ends with the input, or with the process
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

// DropTyped forgets what was typed before the question appeared, because the person cannot have meant it as the answer.
func (l *lineReader) DropTyped() {
	flushInput(l.in)
	l.startReader()
	t := time.NewTimer(20 * time.Millisecond) // for a line that the reader has taken from the terminal and not yet handed over
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

// ReadLine waits for the next line, the end of the input, or the end of ctx. A line that comes later stays for the next caller.
func (l *lineReader) ReadLine(ctx context.Context) (string, error) {
	l.startReader()
	select {
	case line, ok := <-l.next:
		if !ok {
			return "", ErrEndOfInput
		}
		return line, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// Conversation is the dialogue about one question. promptPerson makes it once the question has the terminal, and one goroutine
// uses it.
type Conversation struct {
	// ctx ends when the question is cancelled; every read of a line returns then.
	ctx   context.Context
	Lines *lineReader
	Out   io.Writer
	// unshownText is the part of a long text that has not been shown; ChooseWord shows it when the person types "more".
	unshownText []rune
}

// Print writes to standard error, where all questions go.
func (t *Conversation) Print(format string, args ...any) { fmt.Fprintf(t.Out, format, args...) }

// PrintQuoted shows a text of a server with "|" before each line, so that no line of it can pass for words of mcpvisor.
func (t *Conversation) PrintQuoted(text string) {
	for l := range strings.Lines(strings.TrimRight(messages.Printable(text), "\n") + "\n") {
		t.Print("  | %s\n", strings.TrimRight(l, "\n"))
	}
}

// moreText is the number of characters of a long text that "more" shows at a time.
const moreText = 20_000

// printExcerpt shows at most most characters of a text of a server or a model, quoted and on one line. If there is more, it
// says so, and ChooseWord offers it.
func (t *Conversation) printExcerpt(text string, most int) {
	shown := []rune(messages.Line(text, 0))
	if len(shown) <= most {
		t.PrintQuoted(string(shown))
		return
	}
	t.PrintQuoted(string(shown[:most]))
	t.unshownText = shown[most:]
	t.Print("  These are the first %s of %s characters: [m]ore shows what follows.\n", withCommas(most), withCommas(len(shown)))
}

const (
	// passageText and passageLines bound how much of a server's words is shown at once: who asks must stay on the screen.
	passageText  = 4000
	passageLines = 40
)

// printPassage shows what a server says, quoted and in its own lines, and of a long text only the beginning; ChooseWord offers
// the rest.
func (t *Conversation) printPassage(text string) {
	text = strings.TrimRight(messages.Printable(text), "\n")
	end, lines := 0, 1
	for i, r := range text {
		if r == '\n' {
			lines++
		}
		// i counts bytes, so that the cut falls between runes.
		if i >= passageText || lines > passageLines {
			t.PrintQuoted(text[:end])
			t.unshownText = []rune(text[end:])
			t.Print("  That is not all: %s characters follow. [m]ore shows them.\n", withCommas(len(t.unshownText)))
			return
		}
		end = i + utf8.RuneLen(r)
	}
	t.PrintQuoted(text)
}

// printMore shows the next part of the text that was cut, and how much is left.
func (t *Conversation) printMore() {
	n := min(len(t.unshownText), moreText)
	t.PrintQuoted(string(t.unshownText[:n]))
	if t.unshownText = t.unshownText[n:]; len(t.unshownText) > 0 {
		t.Print("  %s characters follow: [m]ore shows them.\n", withCommas(len(t.unshownText)))
	} else {
		t.Print("  This was the end.\n")
	}
}

// withCommas formats a number with commas between groups of three digits. n is not negative.
func withCommas(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// readLine prints the prompt and waits for a line, whose blanks at both ends are removed.
func (t *Conversation) readLine(prompt string) (string, error) {
	t.Print("%s", prompt)
	text, err := t.Lines.ReadLine(t.ctx)
	return strings.TrimSpace(text), err
}

// ChooseWord asks until the answer is one of the words or the beginning of one; the first word that fits wins. An empty line is
// never an answer, because consent must be typed. The error is the end of the input or of the question.
func (t *Conversation) ChooseWord(prompt string, words ...string) (string, error) {
	for {
		got, err := t.readLine(prompt + " ")
		if err != nil {
			return "", err
		}
		// A text that was cut must be readable before the decision, so that a server cannot hide something in its end.
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
			t.Print("  Type %s.\n", joinAlternatives(slices.Concat([]string{"more"}, words)))
		} else {
			t.Print("  Type %s.\n", joinAlternatives(words))
		}
	}
}

// joinAlternatives joins words for a sentence: "yes, once or no".
func joinAlternatives(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// startDetached starts a program that lives on by itself, such as a browser. It does not pass on variables that begin with
// MCPVISOR_, since one of them may be a passphrase.
func startDetached(command string, args ...string) error {
	cmd := exec.Command(command, args...)
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "MCPVISOR_") })
	detachProcess(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() { _ = cmd.Wait() }() // the program is reaped; its exit code does not matter
	return nil
}

// errNotHidden refuses to read a secret from a terminal that would show it.
var errNotHidden = errors.New("this terminal cannot hide what is typed")

// ReadAnswer reads a line, and for a secret hides what is typed. Blanks at both ends are removed.
func (t *Conversation) ReadAnswer(prompt string, secret bool) (string, error) {
	if !secret {
		return t.readLine(prompt)
	}
	show, ok := hideInput(t.Lines.in)
	if !ok {
		// The caller treats this error as an interrupt, therefore the reason is printed here.
		t.Print("  %s; give it with --env, --header or --arg.\n", "What you type cannot be hidden here")
		return "", errNotHidden
	}
	defer show()
	v, err := t.readLine(prompt)
	t.Print("\n")
	return v, err
}
