// Package output checks whether a tool's answer fits its output schema, whether the person's input fits the form that a server
// sent, and, with Validate, whether a command's arguments fit a tool's input schema.
//
// 2025-06-18 and later, Tools, Output Schema: "Servers MUST provide structured results that conform to this schema.
// Clients SHOULD validate structured results against this schema."
//
// Guarantees: an answer is read and never changed. Nothing is fetched: a reference to another document makes a
// schema unusable. With every schema and every answer of a server, a check ends within bounds of its size, depth,
// work and time, and its outcome is a line of at most 600 characters that is fit for a terminal.
//
// # How it fits
//
// Package supervisor owns one Checker for answers, behind Result.Flaw, and one for forms, which it asks before and after the person.
// The command reads forms with ReadForm, so that it shows what is checked, and checks arguments with Validate. The schemas are
// compiled by santhosh-tekuri/jsonschema, to which this package adds the bounds.
//
// Dialects: 2020-12 where a schema names none, as the specification says, and by $schema also 2019-09, draft-07,
// draft-06 and draft-04. A format is checked in draft-07 and older only, as their rules have it. A pattern that Go's
// regular expressions cannot read, or that is very large, matches everything.
//
// Less formally: a flaw is a remark on a result and no error, because a model can often use an answer that
// violates its schema; and a schema that cannot be used says nothing about the answer but is reported, too.
//
// Not promised: that a schema which compiles describes what its author meant.
//
// Public for the command: what it exports may change without notice.
package output
