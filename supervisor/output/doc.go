// Package output says whether a tool's answer is what its output schema promises, and whether what a person gave fits
// the form that a server asked for.
//
// 2025-06-18 and later, Tools, Output Schema: "Servers MUST provide structured results that conform to this schema.
// Clients SHOULD validate structured results against this schema."
//
// Guarantees: an answer is looked at and never changed. Nothing is fetched: a reference to another document makes a
// schema unusable. Whatever a server sends as a schema or as an answer, a check ends within bounds of its size, depth,
// work and time, and its verdict is a line of at most 600 characters that is fit for a terminal.
//
// Dialects: 2020-12 where a schema names none, as the specification says, and by $schema also 2019-09, draft-07,
// draft-06 and draft-04. A format is checked in draft-07 and older only, as their rules have it. A pattern that Go's
// regular expressions cannot read, or that is very large, matches everything.
//
// Less formally: what is wrong is a remark on a result, not an error, because a model can often use an answer that
// misses a promise; and a schema that cannot be used says nothing about the answer but is told, too.
package output
