//go:build !unix

package discover

import "io/fs"

// openToOthers says nothing here: who may write a file is not among its permissions.
func openToOthers(fs.FileInfo) string { return "" }
