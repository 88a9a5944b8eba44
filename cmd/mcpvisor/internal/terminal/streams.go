// Package terminal holds the streams of a run and how texts reach them: tables, JSON with its version, colours, and the words that
// sentences are made of.
//
// How it fits: the command's run puts three writers before its streams. [BoundStderr] keeps a reader who has stopped reading from
// blocking a command, [Escape] escapes what strangers wrote before a terminal shows it, and a [CheckedWriter] remembers that
// output was lost. Commands then print with [NewTable] and [PrintJSON]. Nothing here knows an option or a server.
//
//	a command ──> CheckedWriter ──> escapeWriter ──> standard output
//	a command ──> escapeWriter ──> boundedWriter ──> standard error
//
// Guarantees: no text of a server acts on a terminal; bytes for a pipe or a file are not changed. A lost write to
// standard output is noticed at the end of the command.
//
// Not promised: a width. Where the terminal does not say its columns, lines are as long as their text.
package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Streams holds the three streams that a run reads and writes. Tests pass buffers in place of the process's files.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// StandardStreams returns the streams of this process, for main alone: commands use those of their options.
func StandardStreams() Streams { return Streams{os.Stdin, os.Stdout, os.Stderr} }

// IsTerminal reports whether a reader or writer of a run is a terminal, also through the writers of this program.
func IsTerminal(s any) bool {
	f, ok := s.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}

// FileOf returns the file behind the writers that this program puts around a stream; nil if there is no file.
func FileOf(w any) *os.File {
	for {
		switch s := w.(type) {
		case *os.File:
			return s
		case *CheckedWriter:
			w = s.Writer
		case *boundedWriter:
			w = s.out
		case *escapeWriter:
			w = s.out
		default:
			return nil
		}
	}
}

// UsesColours reports whether colours may be written to w: only to a terminal, and not if NO_COLOR (no-color.org) or TERM=dumb
// forbid it.
func UsesColours(w io.Writer) bool {
	return IsTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// ColumnsOf returns the width of w in columns, or 0 if w is no terminal: then nothing needs to be cut.
func ColumnsOf(w io.Writer) int {
	if f := FileOf(w); f != nil {
		if columns, _, err := term.GetSize(int(f.Fd())); err == nil {
			return columns
		}
	}
	return 0
}

// These are the sequences for the terminal. The table uses the alternate screen, so that typed keys and changes of the size do
// no lasting damage, and the text of before is there again afterwards. No other mode stays changed for longer than one frame
// takes: a mcpvisor that is killed could not restore it.
const (
	AnsiEnter = "\x1b[?1049h\x1b[2J"
	AnsiLeave = "\x1b[?1049l"
	// AnsiHome begins a frame: terminals that can show it as a whole, without the cursor and without automatic line breaks.
	// AnsiDone ends it.
	AnsiHome = "\x1b[?2026h\x1b[?25l\x1b[?7l\x1b[H"
	AnsiDone = "\x1b[J\x1b[?7h\x1b[?25h\x1b[?2026l"
	// AnsiClear empties a line before it is written. Cleared after a full line, it would delete the line's last character.
	AnsiClear = "\x1b[2K"
)
