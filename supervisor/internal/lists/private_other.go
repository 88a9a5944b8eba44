//go:build !unix

package lists

import "io/fs"

// noFollow has no counterpart here; readPrivate looks before it opens.
const noFollow = 0

// exposureOf cannot be told from a mode here. On Windows a user's own directories are closed to others by inheritance.
func exposureOf(fs.FileInfo) string { return "" }
