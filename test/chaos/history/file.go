package history

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/mcpvisor/mcpvisor/test/chaos/scenario"
	"github.com/mcpvisor/mcpvisor/transports/files"
)

// maxLine bounds one line that is read, in bytes: the plan of ten thousand servers has some megabytes.
const maxLine = 256 << 20

// fileVersion is the form of a written history. The first form has no number, so that histories of the same seed have the same bytes.
const fileVersion = 1

// fileHeader is the first line of a written history.
type fileHeader struct {
	Version int            `json:"version,omitempty"`
	Plan    *scenario.Plan `json:"plan"`
}

// Write writes the canonical form as lines of JSON: the plan first, then one event per line. It holds no more than one line in
// memory.
func (h *History) Write(w io.Writer) error {
	b := bufio.NewWriterSize(w, 1<<16)
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(fileHeader{Plan: &h.Plan}); err != nil {
		return fmt.Errorf("the plan cannot be written: %w", err)
	}
	seq := map[string]int{}
	for _, i := range h.Index().order {
		e := h.Events[i]
		seq[e.Server]++
		e.Seq = seq[e.Server]
		if err := enc.Encode(&e); err != nil {
			return fmt.Errorf("event %d of server %q cannot be written: %w", e.Seq, e.Server, err)
		}
	}
	return b.Flush()
}

// Read reads a history that Write wrote. An error names the line; one about a history of a newer program wraps a [*files.NewerError]. Order becomes the place of the event in the file.
func Read(r io.Reader) (*History, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	h := &History{}
	same := internTable{}
	for number := 1; ; number++ {
		line, err := readLine(in)
		switch {
		case err != nil && !errors.Is(err, io.EOF):
			return nil, fmt.Errorf("line %d cannot be read: %w", number, err)
		case len(bytes.TrimSpace(line)) == 0:
			if err == nil {
				continue
			}
			if number == 1 {
				return nil, errors.New("line 1: the history is empty; a history begins with a line that holds its plan")
			}
			return h, nil
		case number == 1:
			first := fileHeader{}
			err := json.Unmarshal(line, &first)
			// The number counts first: the plan of a newer form may not fit.
			if first.Version > fileVersion {
				return nil, &files.NewerError{What: "the history", Version: first.Version, Reads: fileVersion}
			}
			if err != nil {
				return nil, fmt.Errorf("line 1 is not the plan of a history: %w", err)
			}
			if first.Plan == nil {
				return nil, errors.New(`line 1 is not the plan of a history: it has no member "plan"`)
			}
			h.Plan = *first.Plan
		default:
			var e Event
			if err := json.Unmarshal(line, &e); err != nil {
				return nil, fmt.Errorf("line %d is not an event: %w", number, err)
			}
			if e.Kind == "" || e.Side == "" {
				return nil, fmt.Errorf("line %d is not an event: it says neither who saw what happened, nor what", number)
			}
			e.Order = len(h.Events) + 1
			same.internEvent(&e)
			h.Events = append(h.Events, e)
		}
	}
}

// readLine reads one line of at most maxLine bytes. A line that fits into the reader's buffer is not copied, so that it is
// valid until the next call only.
func readLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if line == nil && err == nil {
			return part, nil
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
		if len(line) > maxLine {
			return nil, fmt.Errorf("it has more than %d bytes", maxLine)
		}
	}
}

// internTable keeps one copy of each word that many events share, because a history has millions of them.
type internTable map[string]string

// internWord replaces a word by the copy that is already known.
func (t internTable) internWord(s *string) {
	if *s == "" {
		return
	}
	if known, ok := t[*s]; ok {
		*s = known
		return
	}
	t[*s] = *s
}

// internEvent interns the words of an event that repeat.
func (t internTable) internEvent(e *Event) {
	for _, s := range []*string{
		&e.Server, (*string)(&e.Side), (*string)(&e.Kind), (*string)(&e.Phase), (*string)(&e.Step), (*string)(&e.Retry),
		(*string)(&e.Class), (*string)(&e.Outcome), &e.Method, &e.Tool, &e.Hash, &e.Name,
	} {
		t.internWord(s)
	}
}
