package jsonrpc

import (
	"strconv"

	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// TextsOf returns the strings of a JSON array, at most limit; other elements are skipped.
func TextsOf(value []byte, limit int) (texts []string) {
	if !rawjson.IsArray(value) {
		return nil
	}
	list := rawjson.ArrayAt(value, 0, 0)
	for list.Next() {
		if v, ok := rawjson.Text(list.Skip()); ok && len(texts) < limit {
			texts = append(texts, v)
		}
	}
	return texts
}

func IsTrue(value []byte) bool { return string(value) == "true" }

// SizeOf reads a size in bytes; nil for a negative number and for one that is no whole number of an int64.
func SizeOf(value []byte) *int64 {
	n, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		f, err := strconv.ParseFloat(string(value), 64) // 1024.0 and 1e3 are whole numbers of JSON, too
		if err != nil || f != float64(int64(f)) || f >= 1<<53 {
			return nil
		}
		n = int64(f)
	}
	if n < 0 {
		return nil
	}
	return &n
}
