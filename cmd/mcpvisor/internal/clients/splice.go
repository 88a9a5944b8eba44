package clients

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
)

// splice is the difference of two texts: at Offset, Removed stands in the one before and Added in the one after. The hashes tell
// whether a text is one of the two. Together they undo a change without a copy of the text.
type splice struct {
	Before  string `json:"before"`
	After   string `json:"after"`
	Offset  int    `json:"offset"`
	Removed []byte `json:"removed"`
	Added   []byte `json:"added"`
}

// spliceOf returns the difference of two texts, with what both begin and end with left out.
func spliceOf(before, after []byte) splice {
	short := min(len(before), len(after))
	begin := 0
	for begin < short && before[begin] == after[begin] {
		begin++
	}
	end := 0
	for end < short-begin && before[len(before)-1-end] == after[len(after)-1-end] {
		end++
	}
	return splice{Before: hashOf(before), After: hashOf(after), Offset: begin,
		Removed: bytes.Clone(before[begin : len(before)-end]), Added: bytes.Clone(after[begin : len(after)-end])}
}

// undo returns the text before; ok is false if text is not the one after, or the splice is damaged.
func (s splice) undo(text []byte) (before []byte, ok bool) {
	if hashOf(text) != s.After || s.Offset < 0 || s.Offset > len(text) || !bytes.HasPrefix(text[s.Offset:], s.Added) {
		return nil, false
	}
	before = append(bytes.Clone(text[:s.Offset]), s.Removed...)
	before = append(before, text[s.Offset+len(s.Added):]...)
	return before, hashOf(before) == s.Before
}

// hashOf returns the SHA-256 of a text in hexadecimal digits.
func hashOf(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
