//go:build !unix

package audit

// noFollow is zero where the system has no such flag: openFlags looks before the file is opened.
const noFollow = 0
