package failure

import (
	"regexp"
	"strings"
	"sync"

	"github.com/mcpvisor/mcpvisor/actors/failure/internal/known"
	"github.com/mcpvisor/mcpvisor/messages"
)

// text is the end of a program's standard error, as lines without colours.
type text struct {
	lines []string
	whole string // the lines again, joined, for quick searches
	kinds []kind // filled in as lines are classified: most never are
	usage int    // the number of the last line that shows the usage, counted from 1; 0 if there is none
}

// kind classifies a line for the search for the reason.
type kind uint8

const (
	unclassified  kind = iota // not looked at yet
	plainLine                 // anything else
	stackFrame                // a part of a stack, a brace, a place: it belongs to an error and does not name it
	errorSounding             // it has a word that errors have
	uncaught                  // the head of an uncaught error, which ends the program
)

// colours matches terminal sequences. The escape character may have been replaced by U+FFFD before.
var colours = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("(?:\x1b|\ufffd)\\[[0-9;?]*[A-Za-z]") })

// readLines splits the end of a text. The first line is dropped if it was cut in the middle.
func readLines(stderr string) *text {
	// The reason of an end is near the end.
	if len(stderr) > textSize {
		stderr = stderr[len(stderr)-textSize:]
		// The beginning of a line that was cut off would be taken for a line of its own.
		if i := strings.IndexByte(stderr, '\n'); i >= 0 && i < len(stderr)-1 {
			stderr = stderr[i+1:]
		}
	}
	t := &text{}
	for line := range strings.Lines(stderr) {
		line = strings.TrimRight(line, "\r\n \t")
		// A progress bar writes over itself: only what stands after its last return was visible.
		line = line[strings.LastIndexByte(line, '\r')+1:]
		if strings.ContainsAny(line, "\x1b\ufffd") {
			line = colours().ReplaceAllString(line, "")
		}
		// A long line is usually data; its beginning says what it is.
		if len(line) > lineSize {
			line = line[:lineSize]
		}
		// Empty lines are kept, because the distance between lines counts.
		t.lines = append(t.lines, line)
		if strings.Contains(line, "sage") && usage().MatchString(line) {
			t.usage = len(t.lines)
		}
	}
	t.whole = strings.Join(t.lines, "\n")
	t.kinds = make([]kind, len(t.lines))
	return t
}

// lineKind returns the kind of line i. Usage lines, and the options below them, are treated like a stack: they follow an error.
func (t *text) lineKind(i int) kind {
	if t.kinds[i] == unclassified {
		line := t.lines[i]
		// Only usage lines, and what stands below them, change their kind by their place.
		switch t.kinds[i] = kindOf(line); {
		case t.usage == i+1, t.usage > 0 && i >= t.usage && (strings.TrimLeft(line, " \t-") != line || strings.HasSuffix(line, ":")):
			t.kinds[i] = stackFrame
		}
	}
	return t.kinds[i]
}

// reasonLine returns the number of the line that names the reason, -1 if nothing was written.
//
// It is the last uncaught error, unless the program wrote more than a few lines after it, and so survived it; else the last line
// that sounds like an error; else the last plain line; else the line that shows the usage.
func (t *text) reasonLine() int {
	last, lastSounds, after := -1, -1, 0
	// From the last line back: what a program wrote last is the likeliest reason.
	for i := len(t.kinds) - 1; i >= 0 && i >= len(t.kinds)-reasonLines; i-- {
		switch t.lineKind(i) {
		case uncaught, errorSounding:
			if t.lineKind(i) == uncaught && after <= survivedAfter {
				return t.errorLine(i)
			}
			if lastSounds < 0 {
				lastSounds = i
			}
			after++
		case plainLine:
			if last < 0 {
				last = i
			}
			after++
		case stackFrame, unclassified:
		}
	}
	switch {
	case lastSounds >= 0:
		return t.errorLine(lastSounds)
	case last < 0:
		return t.usage - 1
	}
	return last
}

// reasonLines bounds the lines from the end that are searched for the reason.
const reasonLines = 250

// survivedAfter bounds the lines behind the head of an error that ends the program: they are its own text.
const survivedAfter = 4

// errorLine returns the line that names an error whose head only names its kind: for a panic of Rust or an exception of C++ the
// next line, for an error that is printed as an object the line of its message.
func (t *text) errorLine(head int) int {
	line := t.lines[head]
	// The message of such an error stands below its head.
	next := min(head+1, len(t.lines)-1)
	switch {
	// Rust and C++ write the message on the next line.
	case strings.HasPrefix(line, "thread '"), strings.HasPrefix(line, "terminate called after"):
		if t.lines[next] != "" {
			return next
		}
	// Node prints an error object over several lines.
	case strings.HasSuffix(line, "["), strings.HasSuffix(line, "{"):
		// The first member named message is that of the error itself; its causes stand further down.
		for i := next; i < min(next+objectLines, len(t.lines)); i++ {
			if message().MatchString(t.lines[i]) {
				return i
			}
		}
	}
	return head
}

// objectLines bounds the lines below the first one in which the message of an object is searched for.
const objectLines = 20

// wasSurvived reports whether another error, up to the line reason, came after the one at line i.
func (t *text) wasSurvived(i, reason int) bool {
	if i >= reason {
		return false
	}
	// npm writes one error as a block of lines with a common beginning.
	for ; i < reason; i++ {
		if t.lineKind(i+1) == uncaught && t.lineKind(i) != uncaught && !strings.HasPrefix(t.lines[i+1], "Caused by: ") {
			return true
		}
	}
	return false
}

// displayLine returns a line for a person, without the marks that its program puts in front of it.
func (t *text) displayLine(i int) string {
	// The marks are removed one after the other, because several may stand in front of one message.
	line := strings.TrimSpace(t.lines[i])
	// The marks of Node, npm, Python's exception groups, uv and C++.
	for _, front := range []string{"[cause]: ", "npm error ", "npm ERR! ", "| ", "╰─▶ ", "╰─> ", "├─▶ ", "× ", "what():  "} {
		line = strings.TrimSpace(strings.TrimPrefix(line, front))
	}
	// Of an object's line only the text of its message is shown.
	if m := message().FindStringSubmatch(line); m != nil {
		line = m[1]
	}
	// Node wraps the reason of an unhandled rejection in a long sentence.
	if _, why, ok := strings.Cut(line, "The promise rejected with the reason "); ok {
		line = "UnhandledPromiseRejection: " + why
	}
	return messages.Line(line, shownRunes)
}

// kindOf classifies one line by its own text alone.
func kindOf(line string) kind {
	bare := strings.TrimSpace(line)
	switch {
	case !strings.ContainsFunc(bare, known.IsWordRune), hasAnyPrefix(bare, frames...), line != bare && inner().MatchString(line):
		return stackFrame
	// npm begins every line with its own mark, so the mark alone says nothing.
	case hasAnyPrefix(bare, "npm error ", "npm ERR! ", "npm error", "npm ERR!"):
		_, rest, _ := strings.Cut(bare, " ")
		_, rest, _ = strings.Cut(rest, " ")
		if npmFrame().MatchString(rest) {
			return stackFrame
		}
		return errorSounding
	// The expression is slow; the signs rule nearly every line out before it.
	case containsAny(line, headSigns...) && head().MatchString(line):
		return uncaught
	case (line == bare || hasAnyPrefix(bare, "╰", "├", "│", "×")) && soundsBad(bare):
		return errorSounding
	}
	return plainLine
}

// soundsBad reports whether a line has a word, or two words in a row, with which programs say that something is wrong.
func soundsBad(line string) bool {
	// Words are compared one by one and in pairs.
	before := ""
	for word := range strings.FieldsFuncSeq(strings.ToLower(line), func(r rune) bool { return !known.IsWordRune(r) && r != '\'' }) {
		word = strings.Trim(word, "'")
		if badWord(word) || badPair(before+" "+word) {
			return true
		}
		before = word
	}
	return hasAnyPrefix(line, "×", "✖", "✗", "❌")
}

// containsAny is the cheap test before a regular expression.
func containsAny(line string, signs ...string) bool {
	for _, s := range signs {
		if strings.Contains(line, s) {
			return true
		}
	}
	return false
}

// headSigns are texts of which every line that head matches has one: other lines are not compared with the expression.
var headSigns = []string{
	"Error", "Exception", "Rejection", "Exit", "Interrupt", "Fault", "[cause]", "Caused by", "panic", "fatal error", "FATAL ERROR", "terminate called", ":in ",
}

// hasAnyPrefix reports whether a line begins with one of the texts.
func hasAnyPrefix(line string, fronts ...string) bool {
	for _, f := range fronts {
		if strings.HasPrefix(line, f) {
			return true
		}
	}
	return false
}

// frames are the beginnings of lines that belong to an error and do not name it.
var frames = []string{
	"at ", "from ", "File \"", "Traceback (most", "The above exception was", "During handling of", // stacks
	"goroutine ", "[signal ", "exit status ", "created by ", "main.", "stack backtrace", "note: run with",
	"Node.js v", "node:internal/", "node:events:", "node:fs:", "Require stack:", "- /", "Emitted 'error' event", "Did you mean to import",
	"----- Native stack", "<--- ", "FailedToOpenSocket",
	"(Use `node --trace", "npm warn", "npm WARN", "npm notice", "Run 'docker", "See 'docker", "See 'podman",
	"BEGIN failed--", "hint: ", "... ", "+ Exception Group", "Aborted", "(core dumped",
}

var (
	// inner matches the lines inside an error: stacks of Node and Java, properties of an object, frames and carets of Python.
	inner = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^\s+(?:at |from |\.\.\. |/|'?[\w$]+'?: |[\w$.]+\(|\[?'|File "|[~^]+|-\w|--\w|throw |new |return |raise |await )|^\s+\d+: 0x`)
	})
	// usage matches the line that shows how a program is used.
	usage = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^(?:\[\w+\] )?usage(?:: | of |:$)`) })
	// message matches the text of an error that is printed as an object.
	message = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^\s*["']?message["']?: ["'](.*)["'],?$`) })
	// npmFrame matches npm's lines about its log and properties, and its general advice.
	npmFrame = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^$|^\s+(?:at |\w+: )|^\s*[}{]|^(?:code|errno|syscall|path|dest|command|signal) |^A complete log of this run|^Log files were not|` +
			`^You can rerun|^(?:network|enoent|notarget|404|403|nospc|JSON\.parse)(?:\s*$| This is|\s+In most cases|\s+Note that| Note: | tarball,| If you are behind|` +
			` There appears| Clear up| Failed to parse)|^If you are behind|^To see a list|^To correct this|^To permanently|^\s+(?:npm|sudo) |^Valid options`)
	})
	// head matches the first lines of errors that end a program, in the form of its language.
	head = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:Uncaught )?(?:[\w$]+\.)*(?:[A-Z][\w$]*)?(?:Error|Exception|Rejection|Exit|Interrupt|Fault)(?: \[\w+\])?(?::|$)|` +
			`^\s+\[cause\]: |^[\s|]+\|\s(?:[\w$]+\.)*[A-Z]\w*(?:Error|Exception)(?::|$)|` +
			`^Exception in thread |^Caused by: |^Unhandled exception\. |^panic: |^fatal error: |^FATAL ERROR: |` +
			`^thread '.{0,80}' (?:\(\d+\) )?panicked at |^terminate called after |^\S+:\d+:in .*\(\w+\)$`)
	})
)
