package config

import (
	"encoding/json"
	"math"
	"path/filepath"
	"slices"

	"github.com/mcpvisor/mcpvisor/messages"
)

// auditKey is a key of a file, beside its servers: where the record of what is done is kept, and what of it.
const auditKey = "audit"

// Audit is the record of calls and changes that a file asks for.
type Audit struct {
	// Off says that no record is kept.
	Off bool
	// File is where it is kept, absolute; empty means where the program keeps it.
	File string
	// Arguments is one of AuditArguments; empty means hash.
	Arguments string
	// MaxSize is the size in bytes at which the file is put aside, Keep how many of those are kept; 0 means as usual.
	MaxSize int64
	Keep    int
	// KeepFor is how long one of those is kept after it was written last; 0 means as long as there are no more than Keep.
	KeepFor messages.Duration
	// Managed says that the organisation's file asks for it.
	Managed bool
}

// AuditArguments are the words for what is recorded of the arguments of calls.
var AuditArguments = []string{"hash", "redacted", "none", "full"}

// readAudit reads false, or {"file": "/var/log/mcpvisor/audit.jsonl", "arguments": "hash", "maxSize": 10485760, "keep": 5,
// "keepFor": "720h"}.
// A file that lies in a project may not say what is recorded of its own servers.
func (r *reader) readAudit(v value, p *Parsed) {
	const example = `write {"file": "/PATH/audit.jsonl", "arguments": "hash", "maxSize": 10485760, "keep": 5}, or false`
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
		case "arguments":
			if r.readText(m, &a.Arguments) && !slices.Contains(AuditArguments, a.Arguments) {
				r.addProblem(r.posOf(m.Value), m.key, "unknown value "+quoteShort(messages.Line(a.Arguments, 40)),
					"write hash, redacted, none or full")
				a.Arguments = ""
			}
		case "maxSize":
			r.readWhole(m, "a number of bytes", func(n int64) { a.MaxSize = n })
		case "keep":
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

// readWhole reads a whole number from 1 on.
func (r *reader) readWhole(v value, what string, use func(int64)) {
	l, ok := literalOf(v.Value)
	var f float64
	switch {
	case !ok || l.Kind() != '0':
		r.reportType(v, what, "")
	case json.Unmarshal(l, &f) != nil || f != math.Trunc(f) || f < 1 || f > 1<<50:
		r.addProblem(r.posOf(v.Value), v.key, "it must be a whole number of at least 1", "")
	default:
		use(int64(f))
	}
}

// auditOf returns what the file that counts asks for: the managed one, else the nearest.
func auditOf(files []Parsed) (audit *Audit) {
	for _, f := range files {
		if f.Audit != nil && (f.Audit.Managed || audit == nil || !audit.Managed) {
			audit = f.Audit
		}
	}
	return audit
}
