package config

import "github.com/mcpvisor/mcpvisor/messages"

// nearestKey is the key or the word of a file that was probably meant: two letters may differ at most, because what is far from
// every key is a key of another program.
func nearestKey(word string, candidates []string) string {
	return messages.NearestWithin(word, candidates, 2)
}
