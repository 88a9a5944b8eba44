// Package auth gives the requests of a remote server their credentials, and keeps secrets.
//
// A kind of credentials is a [transports.Authorizer], which goes into the configuration of a remote transport (web.Config.Auth):
//
//   - [APIKey]: a header whose value comes from a [Source]: Text, Env, File or Command;
//   - [Bearer]: the same, as "Authorization: Bearer …"; [TokenFile] is Bearer of a file;
//   - [Helper]: a command that prints headers;
//   - [Tokens]: a function of the program that embeds this package;
//   - a type of the program's own;
//   - package oauth, below this one: the OAuth flows.
//
// A [Store] keeps secrets: the keyring ([Keyring]), encrypted files ([Files]), or memory ([Memory]). [Open] chooses. A
// [Refresher] replaces a secret that is spent by being used, once among all processes ([Locks]).
//
// # How it fits
//
// Package supervisor/internal/credentials makes an Authorizer from the "auth" of a server's entry and gives it to the transport,
// which calls it before every request and after every refusal. The supervisor or the command opens the Store; package oauth keeps
// its sign-ins in it. This package owns the files below Options.Dir, the lock files among them, and the entries in the keyring.
// It runs commands by stdio.Output.
//
//	transport ── Authorize, Refused ──> Authorizer ──> Source: text, variable, file, command
//	                                        └─ oauth ──> Refresher ──> Locks, Store ──> keyring or files
//
// # Guarantees
//
//   - No error text of this package, and none of a transport that uses it, holds a secret: no header value, no token,
//     no passphrase, nothing that a helper has printed.
//   - A value is read again when a server refuses it with 401, and sent again only if it has changed. A file is also read
//     again as soon as its time or size has changed.
//   - A helper or command is bounded (10 s) and does not outlive its run, nor do the processes that it has started, unless
//     they have left its process group.
//   - Files and Memory replace a secret atomically: a process that is killed while writing leaves the old one or the new one.
//   - Of any number of processes that find the same secret expired, one replaces it (Refresher.Once). The others take over
//     what it has stored. A replacement that fails leaves the stored secret alone. A process that is killed leaves no lock.
//   - Files that others may read are refused, and nothing is stored in the clear unless Options.Plain says so.
//
// # Not promised
//
//   - That a keyring replaces a secret atomically, or keeps other programs of the same user from reading it.
//   - That a refresh token survives a kill between the authorization server's answer and the end of the writing, which takes
//     some milliseconds: some servers take the former token again, others do not, and then a person must sign in.
//   - That locks work on a network file system that has none.
//   - That secrets are wiped from memory: Go's garbage collector moves and keeps values as it likes.
package auth
