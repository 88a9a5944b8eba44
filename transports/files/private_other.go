//go:build !unix

package files

import "io/fs"

// NoFollow and NoWait have no counterpart on this system: who opens a file looks at it before.
const (
	NoFollow = 0
	NoWait   = 0
)

// Exposure says nothing, because modes mean nothing on this system. On Windows a user's own directories are closed to others by
// inheritance.
func Exposure(fs.FileInfo) string { return "" }

// ForeignOwner says nothing, for the same reason.
func ForeignOwner(fs.FileInfo) string { return "" }
