//go:build !unix

package serve

// maxConnections returns 0: this system has no bound of open files that a connection counts for.
func maxConnections() int { return 0 }
