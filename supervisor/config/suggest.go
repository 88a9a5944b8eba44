package config

import "github.com/mcpvisor/mcpvisor/messages"

// nearestKey returns the candidate that was probably meant by word, or "". It differs in two letters at most, because a
// word that is far from every key belongs to another program.
func nearestKey(word string, candidates []string) string {
	return messages.NearestWithin(word, candidates, 2)
}
