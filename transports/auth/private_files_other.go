//go:build !unix

package auth

import "io/fs"

// openNonblock is not needed: named pipes are not in the file system here.
const openNonblock = 0

// exposureReason returns nothing, because modes say nothing here. On Windows a user's own directories are closed to others by
// inheritance.
func exposureReason(fs.FileInfo) string { return "" }
