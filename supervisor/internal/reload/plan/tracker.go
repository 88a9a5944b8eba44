package plan

import (
	"bytes"
	"crypto/sha256"
	"maps"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// Rules are the settings that do not change while files are followed.
type Rules struct {
	// Quiet and Most say when changes are decided about: after Quiet without another one, or Most after the first. Grace is
	// how long a file may be missing or broken before that counts, or is reported. 100 ms, 1 s and 1 s if zero. A longer
	// Quiet spares servers that an editor changes twice, a shorter one applies sooner.
	Quiet, Most, Grace time.Duration
	// Parse reads one file; config.Parse if nil.
	Parse func(config.File) config.Parsed
	// Context says how entries are read: variables, directories, and the like.
	Context config.Context
	// Fixed are entries that belong to no file: those of the command line. They take precedence over all files.
	Fixed []config.Parsed
	// Omit, if not nil, removes servers that another manager has: see discover.Options.
	Omit func(files []config.Parsed, specs map[string]messages.Spec)
}

// withDefaults replaces zero durations and a nil parser by the defaults.
func (r Rules) withDefaults() Rules {
	def := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	def(&r.Quiet, 100*time.Millisecond)
	def(&r.Most, time.Second)
	def(&r.Grace, time.Second)
	if r.Parse == nil {
		r.Parse = config.Parse
	}
	return r
}

// Tracker has what is known of the files, and the last decision. It is a value.
type Tracker struct {
	rules Rules
	// files has the followed files, in the order of the newest reading: within a scope the order decides.
	files []trackedFile
	// decision is the one in force; initial is the set of the first one, nil before it.
	decision Decision
	initial  *config.Set
	// first and newest are the times of the first and the last change that are not decided about; zero if there are none.
	first, newest time.Time
}

// trackedFile is the state of one file.
type trackedFile struct {
	path  string
	scope messages.Scope
	// latest is its present content, parsed, and sum the digest of it.
	latest config.Parsed
	sum    [sha256.Size]byte
	// inForce is the content that counts; nil for a file that appeared broken.
	inForce *config.Parsed
	// since is the time at which it became broken or missing; zero while it is neither. graceOver says that its Grace has passed.
	since     time.Time
	missing   bool
	graceOver bool
}

// New begins with the contents that the manager was started with: each file counts as it is, even if it is broken. The decision that
// follows from them is in force.
func New(rules Rules, files []config.File, approve func(config.Set) config.Set) Tracker {
	b := Tracker{rules: rules.withDefaults()}
	for _, f := range files {
		seen := b.rules.Parse(f)
		b.files = append(b.files, trackedFile{path: f.Path, scope: f.Scope, latest: seen, sum: sumOf(f), inForce: &seen})
	}
	b.decision = b.makeDecision(approve)
	began := b.decision.Set
	b.initial = &began
	return b
}

// Observe takes in the present contents. changed reports whether any differs from before.
func (b Tracker) Observe(now time.Time, files []config.File) (next Tracker, changed bool) {
	before := b.files
	b.files = nil
	for _, f := range files {
		p := trackedFile{path: f.Path, scope: f.Scope}
		at := slices.IndexFunc(before, p.isSameFile)
		if at >= 0 {
			p = before[at]
		}
		if sum := sumOf(f); at < 0 || sum != p.sum || p.missing != f.Missing {
			changed = true
			p.sum = sum
			p.noteReading(now, b.rules.Parse(f), f.Missing)
		}
		b.files = append(b.files, p)
	}
	for i, p := range before { // files that the reading does not have any more
		if slices.ContainsFunc(b.files, p.isSameFile) {
			continue
		}
		if p.inForce == nil && !p.graceOver { // it appeared broken and went away again
			changed = true
			continue
		}
		if !p.missing {
			changed = true
			p.sum = [sha256.Size]byte{}
			p.noteReading(now, config.Parsed{Path: p.path, Scope: p.scope, Broken: true}, true)
		}
		b.files = slices.Insert(b.files, b.indexAfter(before[:i]), p)
	}
	if changed {
		b = b.NoteChange(now)
	}
	return b, changed
}

// isSameFile reports whether two states are of one file.
func (p trackedFile) isSameFile(o trackedFile) bool { return o.path == p.path && o.scope == p.scope }

// indexAfter returns the place behind the last present file that stood before one which is missing: within a scope the order counts.
func (b Tracker) indexAfter(before []trackedFile) int {
	for _, p := range slices.Backward(before) {
		if at := slices.IndexFunc(b.files, p.isSameFile); at >= 0 {
			return at + 1
		}
	}
	return 0
}

// NoteChange records a change that is not in a followed file, such as an approval.
func (b Tracker) NoteChange(now time.Time) Tracker {
	b.newest = now
	if b.first.IsZero() {
		b.first = now
	}
	return b
}

// ReportBroken skips the Grace of broken files for reports, because a caller waits for what is wrong with the files.
func (b Tracker) ReportBroken() Tracker {
	b.files = slices.Clone(b.files)
	for i := range b.files {
		p := &b.files[i]
		p.graceOver = p.graceOver || !p.since.IsZero() && !p.missing
	}
	return b
}

// noteReading records a changed content: a valid one counts at once, a broken one begins the Grace.
func (p *trackedFile) noteReading(now time.Time, seen config.Parsed, missing bool) {
	p.latest, p.missing = seen, missing
	switch {
	case !seen.Broken:
		p.inForce, p.since, p.graceOver = &seen, time.Time{}, false
	case p.since.IsZero():
		p.since, p.graceOver = now, false
	}
}

// Due returns when Decide should be called next; false if there is nothing to decide.
func (b Tracker) Due() (time.Time, bool) {
	var at time.Time
	sooner := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	if !b.first.IsZero() {
		due := b.newest.Add(b.rules.Quiet)
		if most := b.first.Add(b.rules.Most); most.Before(due) {
			due = most
		}
		sooner(due)
	}
	for _, p := range b.files {
		if !p.since.IsZero() && !p.graceOver {
			sooner(p.since.Add(b.rules.Grace))
		}
	}
	return at, !at.IsZero()
}

// Decide returns the configuration that should be in force now. approve holds back servers that the person has not approved; nil
// holds back none. Called before it is due it decides all the same; only the Grace of files is kept.
func (b Tracker) Decide(now time.Time, approve func(config.Set) config.Set) (Tracker, Decision) {
	b.files = slices.Clone(b.files)
	for i := range b.files {
		p := &b.files[i]
		if p.since.IsZero() || p.graceOver || now.Before(p.since.Add(b.rules.Grace)) {
			continue
		}
		p.graceOver = true
		if p.missing {
			p.inForce = nil
		}
	}
	b.files = slices.DeleteFunc(b.files, func(p trackedFile) bool {
		// A file that was named on purpose and is gone stays, so that its problem is reported.
		return p.missing && p.graceOver && len(p.latest.Problems) == 0
	})
	b.first, b.newest = time.Time{}, time.Time{}
	b.decision = b.makeDecision(approve)
	return b, b.decision
}

// Last returns the decision that is in force.
func (b Tracker) Last() Decision {
	d := b.decision
	d.Specs = maps.Clone(d.Specs)
	return d
}

// sumOf returns a digest of everything that a reading found of a file, its error included.
func sumOf(f config.File) [sha256.Size]byte {
	return sha256.Sum256(bytes.Join([][]byte{[]byte(f.Dir), []byte(f.Err), f.Data}, []byte{0}))
}
