package catalog

import (
	"bytes"
	"slices"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Delta is the difference between two snapshots. Every list holds qualified names, sorted; no name stands in two lists.
type Delta struct {
	Added, Removed []string
	// Changed have another definition: a model would see the difference.
	Changed []string
	// Moved have the same definition and another state, epoch or route: calls go to another connection.
	Moved []string
}

// Empty reports whether the snapshots have the same content.
func (d Delta) Empty() bool { return len(d.Added)+len(d.Removed)+len(d.Changed)+len(d.Moved) == 0 }

// Diff compares two snapshots. Entries that both share cost a comparison of pointers only.
func Diff(old, new *Snapshot) Delta {
	var d Delta
	// Both lists are sorted by name, so one walk compares them.
	a, b := old.sorted, new.sorted
	for len(a) > 0 && len(b) > 0 {
		if a[0] == b[0] {
			a, b = a[1:], b[1:]
			continue
		}
		// The smaller name is in one list only.
		switch strings.Compare(a[0].Name, b[0].Name) {
		case -1:
			d.Removed = append(d.Removed, a[0].Name)
			a = a[1:]
		case 1:
			d.Added = append(d.Added, b[0].Name)
			b = b[1:]
		default:
			switch {
			case !sameTool(a[0].Tool, b[0].Tool):
				d.Changed = append(d.Changed, b[0].Name)
			case a[0].State != b[0].State || a[0].Epoch != b[0].Epoch || !sameRoute(a[0].Route, b[0].Route):
				d.Moved = append(d.Moved, b[0].Name)
			}
			a, b = a[1:], b[1:]
		}
	}
	for _, e := range a {
		d.Removed = append(d.Removed, e.Name)
	}
	for _, e := range b {
		d.Added = append(d.Added, e.Name)
	}
	return d
}

// sameTool compares definitions. The server is not compared, because both tools are of one server or have one qualified name.
func sameTool(a, b *messages.Tool) bool {
	return a == b || a.Name == b.Name && a.Title == b.Title && a.Description == b.Description &&
		bytes.Equal(a.InputSchema, b.InputSchema) && bytes.Equal(a.OutputSchema, b.OutputSchema) &&
		sameAnnotations(a.Annotations, b.Annotations) && bytes.Equal(a.Raw, b.Raw) &&
		a.TaskSupport == b.TaskSupport && slices.EqualFunc(a.Icons, b.Icons, sameIcon)
}

// sameIcon compares icons by all that a model or person is shown of them.
func sameIcon(a, b messages.Icon) bool {
	return a.Src == b.Src && a.MIMEType == b.MIMEType && a.Theme == b.Theme && slices.Equal(a.Sizes, b.Sizes)
}

// sameAnnotations compares every hint; none at all differs from hints without values.
func sameAnnotations(a, b *messages.Annotations) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Title == b.Title && sameHint(a.ReadOnly, b.ReadOnly) && sameHint(a.Destructive, b.Destructive) &&
		sameHint(a.Idempotent, b.Idempotent) && sameHint(a.OpenWorld, b.OpenWorld)
}

// sameHint compares hints, of which nil says that the server gave none.
func sameHint(a, b *bool) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}
