package files

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// Format is the form of one kind of stored file: a JSON object, one member of which is the number of the form. A program that
// adds, removes or changes a member raises the number, because an older program, which writes only what it knows, would lose
// the new member. A member whose name is not known therefore counts as a newer form.
type Format struct {
	// What names the content for people, as the beginning of a sentence: "the store of approvals".
	What string
	// Key is the name of the member with the number; "version" if empty.
	Key string
	// Oldest and Newest bound the numbers that this program reads. It writes Newest.
	Oldest, Newest int
}

// Unmarshal reads text into v, a pointer, and returns the number of its form. The error is a [*NewerError] for a form that only a
// newer program knows, and [ErrDamaged] (by errors.Is) for everything else: half a file, a name twice, a number below Oldest.
func (f Format) Unmarshal(text []byte, v any) (version int, err error) {
	if version, err = f.VersionOf(text); err != nil {
		return version, err
	}
	switch err := rawjson.UnmarshalKnown(text, v); {
	case errors.Is(err, rawjson.ErrUnknownName):
		newer := &NewerError{What: f.What, Version: version, Reads: f.Newest}
		var at *rawjson.Error
		if errors.As(err, &at) {
			newer.Member = at.Path
		}
		return version, newer
	case err != nil:
		return version, f.damagedError(err.Error())
	}
	return version, nil
}

// VersionOf returns the number of a text's form, and the errors of Unmarshal as far as the number decides them. It reads no
// further than the number, so that a newer form is recognised also where the rest of it looks damaged to this program.
func (f Format) VersionOf(text []byte) (int, error) {
	key := f.Key
	if key == "" {
		key = "version"
	}
	at := rawjson.SkipSpace(text, 0)
	if at >= len(text) || text[at] != '{' {
		return 0, f.damagedError("it is no JSON object")
	}
	for o := rawjson.ObjectAt(text, at, 0); o.Next(); {
		value := o.Skip()
		if string(o.Name) != key {
			continue
		}
		version, err := strconv.Atoi(string(value))
		switch {
		case err != nil || version < f.Oldest:
			return 0, f.damagedError("its " + key + " is none that any mcpvisor has written")
		case version > f.Newest:
			return version, &NewerError{What: f.What, Version: version, Reads: f.Newest}
		}
		return version, nil
	}
	return 0, f.damagedError("it has no " + key)
}

// damagedError returns an error that is [ErrDamaged].
func (f Format) damagedError(reason string) error {
	return fmt.Errorf("%s %w: %s", f.What, ErrDamaged, reason)
}

// ErrDamaged is wrapped by the errors about a file that no mcpvisor can have written so.
var ErrDamaged = errors.New("is damaged")

// NewerError says that stored data has a form that this program does not know. Who gets it leaves the data as they are: another
// program needs them.
type NewerError struct {
	// What names the content, Version is the number of its form, Reads the newest that this program reads.
	What           string
	Version, Reads int
	// Member is the JSON Pointer of a member that this program does not know, if it knows the number itself.
	Member string
}

// Error implements error.
func (e *NewerError) Error() string {
	if e.Member != "" {
		return fmt.Sprintf("%s was written by a newer mcpvisor: this one does not know %q in it", e.What, messages.Escaped(messages.Line(e.Member, 100)))
	}
	return fmt.Sprintf("%s was written by a newer mcpvisor (format %d; this one reads up to %d)", e.What, e.Version, e.Reads)
}

// FixFor says what to do about an error of a Format in the file at path: a newer one is not to be deleted as a damaged one may be.
func FixFor(err error, path string) string {
	var newer *NewerError
	if errors.As(err, &newer) {
		return "upgrade mcpvisor; or move " + path + " away, and keep it for the newer one"
	}
	return "mend or delete " + path
}
