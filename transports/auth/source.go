package auth

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/stdio"
)

// Source is the place of one secret value: [Text], [Env], [File] or [Command]. White space around the value does not count,
// because editors and commands end files with a newline.
type Source struct {
	// description names the place for people, never the value. It begins the errors about it.
	description string
	// read returns the value as it is; nil in the zero Source, which has none.
	read func(ctx context.Context) (string, error)
	// stamp changes when the value may have changed; nil if only a refusal by the server shows a change.
	stamp func() fileStamp
	// fixed is true if reading again returns the same value, so that a refusal is final.
	fixed bool
}

// fileStamp tells one state of a file from another, as far as that can be seen without reading it. It is zero without a file.
type fileStamp struct {
	modified time.Time
	size     int64
}

// maxValue bounds one value in bytes. That is far above any token.
const maxValue = 64 << 10

// Text makes a Source of a value in the configuration itself.
func Text(value string) Source {
	return Source{description: "the configured value", fixed: true,
		read: func(context.Context) (string, error) { return value, nil }}
}

// Env makes a Source of a variable of this process's environment. Its value at the first request counts.
func Env(name string) Source { return EnvOf(name, os.LookupEnv) }

// EnvOf is Env for another environment than that of this process.
func EnvOf(name string, lookup func(name string) (string, bool)) Source {
	what := "the environment variable " + quoteLine(name)
	// The environment of a process does not change from outside, so that a refusal is final.
	return Source{description: what, fixed: true, read: func(context.Context) (string, error) {
		value, ok := lookup(name)
		if !ok {
			return "", noCredentialsError(what+" is not set", "set it before this program starts", nil)
		}
		return value, nil
	}}
}

// File makes a Source of a file's content. The file is read again when its time or size has changed, and when the server refuses
// the value. A file that is missing or empty for a moment, because a program writes it, does no harm while there is a value from
// before.
func File(path string) Source {
	what := "the file " + quoteLine(path)
	return Source{description: what,
		read: func(context.Context) (string, error) { return readFile(path, what) },
		stamp: func() fileStamp {
			info, err := os.Stat(path)
			if err != nil {
				return fileStamp{}
			}
			return fileStamp{info.ModTime(), info.Size()}
		},
	}
}

// readFile reads at most maxValue bytes. Its errors name the file and never show its content.
func readFile(path, what string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return "", noCredentialsError(what+" does not exist", "write the token into it", fs.ErrNotExist)
		}
		return "", noCredentialsError(what+" cannot be read: "+errorReason(err), "", innermostError(err))
	}
	defer f.Close()
	// One byte more than the limit shows that the file is too long.
	b, err := io.ReadAll(io.LimitReader(f, maxValue+1))
	switch {
	case err != nil:
		return "", noCredentialsError(what+" cannot be read: "+errorReason(err), "", innermostError(err))
	case len(b) > maxValue:
		return "", noCredentialsError(what+" is too long for a token", "", nil)
	}
	return string(b), nil
}

// Command makes a Source of the output of a program. The program runs at the first request, and again when the server refuses the
// value; limit bounds each run, 0 means 10 s. Only the fields of program that describe a child count; see stdio.Output.
func Command(program stdio.Config, limit time.Duration) Source {
	what := "the command " + quoteLine(programName(program))
	return Source{description: what, read: func(ctx context.Context) (string, error) {
		out, err := runCommand(ctx, program, limit, what)
		return string(out), err
	}}
}

// Value reads the value for a use other than a header, such as a token to exchange. The error is a *transports.Error and does not
// hold the value.
func (s Source) Value(ctx context.Context) (string, error) { return s.readValue(ctx) }

// Describe names the place for people, and never the value.
func (s Source) Describe() string { return s.description }

// readValue reads the value and checks that a header can carry it, because a line break in it would end the header.
func (s Source) readValue(ctx context.Context) (string, error) {
	// The zero Source comes from a configuration that names no value.
	if s.read == nil {
		return "", noCredentialsError("no source of a value is configured", "", nil)
	}
	value, err := s.read(ctx)
	if err != nil {
		return "", err
	}
	// A newline at the end is the editor's, and HTTP would refuse it.
	value = strings.TrimSpace(value)
	switch {
	case value == "":
		return "", noCredentialsError(s.description+" is empty", "", nil)
	case !httpguts.ValidHeaderFieldValue(value):
		return "", noCredentialsError(s.description+" holds what HTTP does not allow in a header",
			"look for line breaks and stray characters in it", nil)
	}
	return value, nil
}

// noCredentialsError is the error for missing credentials. Callers put no secret into text or cause.
func noCredentialsError(text, fix string, cause error) *transports.Error {
	return &transports.Error{Class: messages.ClassUnauthorized, Text: text, Fix: fix, Err: cause}
}

// quoteLine quotes s, cut to 300 bytes and without control characters, for an error.
func quoteLine(s string) string { return strconv.Quote(messages.Line(s, 300)) }

// programName names a command for people: of a line for the shell its first word, if that is a program's name and no assignment, whose
// value may be a secret.
func programName(program stdio.Config) string {
	shell := ShellCommand("")
	if program.Command == shell.Command && len(program.Args) == 2 && program.Args[0] == shell.Args[0] {
		if first, _, more := strings.Cut(program.Args[1], " "); more && first != "" && !strings.ContainsAny(first, "=$`'\"\\;|&<>(){}#\t\n") {
			return first + " …"
		}
	}
	return commandName(program.Command)
}

// commandName returns a command without its arguments, because one of them may be a token.
func commandName(command string) string {
	if words := strings.Fields(command); len(words) > 1 {
		return words[0] + " …"
	}
	return command
}

// innermostError returns the innermost error: the outer ones repeat what the text of this package says already, the path above
// all.
func innermostError(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// errorReason returns the reason of err as a part of a sentence.
func errorReason(err error) string {
	return strings.TrimRight(messages.Line(innermostError(err).Error(), 200), ".")
}
