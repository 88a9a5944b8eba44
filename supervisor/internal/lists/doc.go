// Package lists keeps tool lists of servers in files, from one run to the next, each only for the audience that could read it.
//
// A file belongs to a server and to a context: everything that decides what the server shows, the credentials with their values
// included. The name of the file, and a line in it, are an HMAC-SHA256 (RFC 2104) of both under a random key of the directory, so
// that a file reveals nothing about credentials to readers without the key, and another context finds no file. MCP 2026-07-28,
// Caching: a result whose cacheScope is private must not be shared across authorization contexts.
//
// Package toolcache calls it: it makes the context, loads a lazy server's list before the first connection, and saves each new one.
//
// The key is 32 random bytes in the file "key". It and the lists are read only if no other user has access to them; where modes mean
// nothing (Windows) the access rules of the user's profile protect them.
//
// Guarantees: a list appears whole, by a rename; of one server at most eight files are kept.
//
// Not promised: that a list is kept. Without a key that may be used, or without room on the disk, nothing is, and the log says so once.
package lists
