// Package questions answers what a server asks of its client: roots, sampling and elicitation. It checks the params, has a
// handler answer, and writes the result, or the error that the server gets.
//
//	result, refused := questions.AnswerElicitation(ctx, params, allowURL, handlers.Elicit)
//
// A server learns nothing of a handler's error but whether the question was refused. [RequiredElicitations] reads the error that
// demands a visit of a person to URLs before a request runs, and [Completions] wakes the requests that wait for such visits.
//
// Package session decides which questions it accepts, and from whom; it runs the functions of this package on goroutines of its
// own.
//
// Guarantees: a question that no answer could satisfy is refused before a person sees it, and exactly the content that the person
// saw last is sent. The error that a server gets holds a code and fixed words, never a handler's text. No other lock is taken under
// the mutex of Completions.
//
// Not promised: time. A person may think for as long as the context of the question lives.
package questions
