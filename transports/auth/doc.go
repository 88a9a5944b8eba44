// Package auth is what gives the requests of a remote server their credentials (kinds of transports.Authorizer), where
// secrets are kept (Store), and how several processes share one that is spent by using it (Locks, Refresher).
package auth
