// Package lists keeps lists of servers in files, from one run to the next, each for those alone who could read it.
//
// A file belongs to a server and to what a caller calls its context: everything that decides what the server shows, the
// credentials with their values included. The name of the file, and a line in it, are an HMAC-SHA256 (RFC 2104) of both under
// a random key of the directory, so that a file says nothing about credentials to those who have no key, and that another
// context finds nothing. MCP 2026-07-28, Caching: a result whose cacheScope is private must not be shared across
// authorization contexts.
//
// The key is 32 random bytes in the file "key". It and the lists are read only if they are the user's alone; where modes mean
// nothing (Windows) the user's profile is closed by its access rules.
package lists
