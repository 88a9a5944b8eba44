// Package outcome says how a request ended. [Answer] is its end as the reader, the timer or the end of the session delivers it;
// the functions turn the failure of a transport, the end of a context and the refusal of a server into a *messages.Error with
// its class and its outcome.
//
//	e := outcome.TranslateError("connect", err)      // a transport's error, in the module's type
//	e.Outcome = outcome.OfSend(delivery, err)        // not-sent, rejected or unknown; a doubt is unknown
//	e := outcome.ContextError(ctx, "before there was an answer")
//	e := answer.AsError("tools/call")                // nil for a result
//
// # Guarantees
//
// Not-sent is said only if no byte left this process, or if the server does not know the session; rejected only if the server
// refused. Everything else is unknown, because the caller of a tool sends a call again after not-sent.
//
// Package session and its lists, streams and tasks call it; it knows no request and no session.
//
// # Not promised
//
// That a caller learns what became of a call: unknown is the honest answer where nothing but a person can find out.
package outcome
