//go:build !unix

package auth

import "io/fs"

// openNonblock is not needed: named pipes are no files here.
const openNonblock = 0

// exposureReason cannot be told from a mode here. On Windows a user's own directories are closed to others by inheritance.
func exposureReason(fs.FileInfo) string { return "" }
