//go:build !unix

package lists

import "io/fs"

// noFollow has no counterpart on this system; readPrivate looks before it opens.
const noFollow = 0

// exposureOf cannot use modes on this system. On Windows a user's own directories deny access to others by inheritance.
func exposureOf(fs.FileInfo) string { return "" }
