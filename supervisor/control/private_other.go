//go:build !unix

package control

import "io/fs"

// accessProblem has nothing to say where modes mean nothing: the user's profile directory is closed by its access rules.
func accessProblem(fs.FileInfo) string { return "" }
