package main

import (
	"io"
	"os"

	"golang.org/x/term"
)

// streams holds the three streams that a run reads and writes. Tests pass buffers in place of the process's files.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// standardStreams returns the streams of this process, for main alone: commands use those of their options.
func standardStreams() streams { return streams{os.Stdin, os.Stdout, os.Stderr} }

// isTerminal reports whether a reader or writer of a run is a terminal, also through the writers of this program.
func isTerminal(s any) bool {
	f, ok := s.(interface{ Fd() uintptr })
	return ok && term.IsTerminal(int(f.Fd()))
}

// fileOf returns the file behind the writers that this program puts around a stream; nil if there is no file.
func fileOf(w any) *os.File {
	for {
		switch s := w.(type) {
		case *os.File:
			return s
		case *checkedWriter:
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

// usesColours reports whether colours may be written to w: only to a terminal, and not if NO_COLOR (no-color.org) or TERM=dumb
// forbid it.
func usesColours(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// columnsOf returns the width of w in columns, or 0 if w is no terminal: then nothing needs to be cut.
func columnsOf(w io.Writer) int {
	if f := fileOf(w); f != nil {
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
	ansiEnter = "\x1b[?1049h\x1b[2J"
	ansiLeave = "\x1b[?1049l"
	// ansiHome begins a frame: terminals that can show it as a whole, without the cursor and without automatic line breaks.
	// ansiDone ends it.
	ansiHome = "\x1b[?2026h\x1b[?25l\x1b[?7l\x1b[H"
	ansiDone = "\x1b[J\x1b[?7h\x1b[?25h\x1b[?2026l"
	// ansiClear empties a line before it is written. Cleared after a full line, it would delete the line's last character.
	ansiClear = "\x1b[2K"
)
