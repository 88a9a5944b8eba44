package config

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

// auditKey names a key of a file, beside its servers: where the audit record is kept, and what it says of arguments.
const auditKey = "audit"

// Audit describes the audit record of calls and changes that a file asks for.
type Audit struct {
	// Off means that no record is kept.
	Off bool
	// File is the absolute path of the record; empty means the program's own place.
	File string
	// Arguments is one of AuditArguments; empty means hash.
	Arguments string
	// MaxSize is the size in bytes at which the writer rotates the file, and Keep the number of rotated files that stay. 0
	// means the default of the package audit.
	MaxSize int64
	Keep    int
	// KeepFor bounds the age of a rotated file, counted from its last write; 0 means that only Keep removes files.
	KeepFor messages.Duration
	// Managed is set if the organisation's file asks for the record, which then wins over every other file.
	Managed bool
}

// AuditArguments lists the words for how the record shows the arguments of calls: as a hash, with secrets taken out, not at
// all, or in full.
var AuditArguments = []string{"hash", "redacted", "none", "full"}

// readAudit reads false, or {"file": "/var/log/mcpvisor/audit.jsonl", "arguments": "hash", "maxSize": 10485760, "keep": 5,
// "keepFor": "720h"}. The key in a file that lies in a project is dropped with a warning, because its author could hide what
// the servers of the project do.
func (r *reader) readAudit(v value, p *Parsed) {
	const example = `write {"file": "/PATH/audit.jsonl", "arguments": "hash", "maxSize": 10485760, "keep": 5}, or false`
	// The check comes before the value is read, so that a project's file gets one warning and no problems.
	if merelyFound(p.Scope) {
		r.addWarning(r.posOf(v.Value), v.key, "a project file cannot say what is recorded, or where; the key is dropped",
			"set it in your own file, or use --audit")
		return
	}
	a := Audit{Managed: p.Scope == messages.ScopeManaged}
	if kind := v.Value.Value.Kind(); kind == 't' || kind == 'f' {
		a.Off = kind == 'f'
		p.Audit = &a
		return
	}
	// readObject records places, and the reader of a whole file has no map for them.
	if r.positions == nil {
		r.positions = map[string]Pos{}
		defer func() { r.positions = nil }()
	}
	keys := []string{"file", "arguments", "maxSize", "keep", "keepFor"}
	r.readObject(v, example, func(key string, at Pos, m value) {
		switch key {
		case "file":
			var file string
			if r.readText(m, &file) && !filepath.IsAbs(file) {
				r.addProblem(r.posOf(m.Value), m.key, "the path is not absolute", "write it from the root on")
			} else {
				a.File = file
			}
		// A word that is not known leaves the default, which hides the arguments.
		case "arguments":
			if r.readText(m, &a.Arguments) && !slices.Contains(AuditArguments, a.Arguments) {
				r.addProblem(r.posOf(m.Value), m.key, "unknown value "+quoteShort(messages.Line(a.Arguments, 40)),
					"write hash, redacted, none or full")
				a.Arguments = ""
			}
		case "maxSize":
			r.readWhole(m, "a number of bytes", func(n int64) { a.MaxSize = n })
		case "keep":
			// The bound keeps the number within an int on every system.
			r.readWhole(m, "a number of files", func(n int64) { a.Keep = int(min(n, 1<<20)) })
		case "keepFor":
			r.readDuration(m, &a.KeepFor)
		default:
			if !isRemark(key) {
				r.warnUnknown(m.key, key, at, keys)
			}
		}
	})
	p.Audit = &a
}

// readWhole reads a whole number from 1 to 2^50, which a float64 holds exactly, and hands it to use. what names the expected
// value in the problem.
func (r *reader) readWhole(v value, what string, use func(int64)) {
	l, ok := literalOf(v.Value)
	var f float64
	switch {
	case !ok || l.Kind() != '0':
		r.reportType(v, what, "")
	// A JSON number may have a fraction or an exponent: 1e3 is the whole number 1000.
	case json.Unmarshal(l, &f) != nil || f != math.Trunc(f) || f < 1 || f > 1<<50:
		r.addProblem(r.posOf(v.Value), v.key, "it must be a whole number of at least 1", "")
	default:
		use(int64(f))
	}
}

// auditOf returns the record of the managed file, or else that of the file with the highest precedence; nil if no file asks for
// one. files come lowest precedence first.
func auditOf(files []Parsed) (audit *Audit) {
	for _, f := range files {
		if f.Audit != nil && (f.Audit.Managed || audit == nil || !audit.Managed) {
			audit = f.Audit
		}
	}
	return audit
}
