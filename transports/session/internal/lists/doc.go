// Package lists reads the lists of a server (tools, resources, templates, prompts, tasks) page by page, and keeps those that may be
// kept.
//
//	l := lists.NewCollector(&lists.Tools, limits)
//	err := l.FetchPages(ctx, source)      // l.Entries, l.Quarantined
//
//	cache := lists.NewCache(&lists.Prompts, conversation, limits, validity)
//	listing, err := cache.Get(ctx)
//	cache.MarkChanged()                   // the server announced a change
//
// # How it fits
//
// A [Kind] describes a list: the request, and how an entry is read (package definitions). A [Collector] reads one list once; a
// [Cache] has at most one Collector at work, and gives its result to all callers that wait. What both need of the session stands
// in [PageSource] and [Conversation], which package session fulfils. The session decides how long a list is valid.
//
// # Guarantees
//
//   - The pages, entries and bytes of a list are bounded by [Limits], and its memory is taken from an account.
//   - An entry that cannot be used is quarantined with a reason and does not spoil the others; a list that cannot be read as a
//     whole is an error, and nothing of it is given.
//   - A cache never gives a list that is older than the newest change that was marked before the caller asked.
package lists
