//go:build !unix

package control

import "io/fs"

// accessProblem finds nothing where modes have no meaning: the access rules of the user's profile directory protect
// it.
func accessProblem(fs.FileInfo) string { return "" }
