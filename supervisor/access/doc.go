// Package access decides whether a tool may be called: allow, ask or deny. It is pure: a decision follows from the rules and the
// request alone, and names the rule that made it and where that rule stands.
//
// Start with Parse for each rule and Decide:
//
//	deny, err := access.Parse(access.Deny, "mcp__github__delete_*")
//	d := access.Decide(access.Rules{Own: access.Set{Rules: []access.Rule{deny}}},
//		access.Request{Server: "github", Tool: "delete_repo"})
//	fmt.Println(d.Verdict, d.Why) // deny the rule deny mcp__github__delete_*
//
// Compile does the same for many calls: what follows from a tool's name is decided once.
//
// # How it fits
//
// Package supervisor/config parses the rules of files, package supervisor/internal/permissions compiles them and asks the Matcher
// before each call and for each list of tools. The package calls only package messages, and holds no state.
//
// # Rules
//
//	mcp__github                    every tool of the server github
//	mcp__github__*                 the same
//	mcp__github__create_issue      one tool
//	mcp__github__get_*             some; * stands for any text, also none
//	github:create_issue            as mcpvisor writes tools for people; the tool is what follows the last colon
//	mcp__fs__write(path:docs/*)    a tool, when its arguments are such
//	mcp__fs__move(from:/a/*,to:/a/*)     both conditions must be met
//	*  mcp__*  mcp__git*  *:delete_*     several servers: in deny and ask only
//
// A deny or an ask may have a star anywhere in its name. An allow may have one only after a literal server: a name that a server
// chooses for itself must not be able to match it. The server of mcp__… ends at the next two underscores; one whose
// own name has two underscores is written server:tool. The name under which a tool is offered, with its hash if it has
// one, always means that tool and no other.
//
// In parentheses stand conditions, NAME:PATTERN with commas between them: the argument NAME, at the top of the arguments,
// is a text, a number, true, false or null, and matches PATTERN as it is written in JSON (a text without its quotes). A
// backslash takes the meaning of the character after it: \* \, \( \) \: \\.
//
// # Precedence
//
//  1. A managed rule that matches decides; no other rule counts. A call that no managed rule matches is decided by the rest, but
//     never more loosely than the managed default, if there is one.
//  2. Among the rules of one level deny beats ask beats allow. A more specific rule does not beat a broader one, nor a later
//     one an earlier one, nor one file another.
//  3. Without a rule: the annotations of a trusted server, if it has any: read-only is allowed, destructive is
//     asked. Only if a default is set, or Rules.Hints.
//  4. Set.Default, which is allow if it is empty. Annotations do not turn a default of deny into an ask.
//
// # What is guaranteed
//
//   - When in doubt, the stricter reading counts. A deny and an ask see an argument whatever the case of its name,
//     in whatever form Unicode writes its letters, all of its values if it is there twice, each element of a list and each value
//     inside of an object, and a path also without its dots. An allow needs the exact name once, and of a list every element
//     (and at least one); it never matches an object, nor a text with a ".." between slashes where its pattern has a *.
//   - Arguments that are no JSON object meet every condition of a deny and an ask, and none of an allow.
//   - A set with a rule that could not be read (Unreadable) denies every call, because any of them may be the one that the rule
//     was to prevent.
//   - A decision that a name alone makes takes no lock and allocates nothing (Matcher.Tool, Judgement.Decide).
//   - Parse accepts any text without panic, bounded to MaxRule bytes.
//
// Not promised: that a condition sees what a server makes of its arguments. It does not know symbolic links, encodings, or
// that /etc can be reached as /proc/1/root/etc. A deny with a condition hinders mistakes and does not stop an attacker; an allow
// with one, under a default of ask or deny, does.
package access
