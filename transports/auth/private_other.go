//go:build !unix

package auth

import "io/fs"

// noWait is not needed: named pipes are no files here.
const noWait = 0

// exposed cannot be told from a mode here. On Windows a user's own directories are closed to others by inheritance.
func exposed(fs.FileInfo) string { return "" }
