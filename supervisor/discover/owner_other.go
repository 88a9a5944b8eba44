//go:build !unix

package discover

import "io/fs"

// openToOthers says nothing on these systems, where the permissions of fs.FileInfo do not tell who may write.
func openToOthers(fs.FileInfo) string { return "" }
