package messages

import "strings"

// MatchPattern reports whether a pattern names a text. A "*" stands for any text, slashes and line breaks included, and
// may stand anywhere and more than once; every other character stands for itself. The time is bounded by the product of
// the lengths.
func MatchPattern(pattern, text string) bool {
	// More parts than these take an allocation, and are rare.
	var few [8]string
	parts := few[:0]
	for part := range strings.SplitSeq(pattern, "*") {
		parts = append(parts, part)
	}
	return MatchParts(parts, text)
}

// MatchParts is [MatchPattern] for a pattern that the caller has split at its stars, for patterns in which a star can be
// escaped.
func MatchParts(parts []string, text string) bool {
	last := len(parts) - 1
	if last <= 0 {
		return last == 0 && parts[0] == text
	}
	// The first part is bound to the beginning of the text. Each of the following takes the leftmost place, which
	// suffices when stars are the only wildcard.
	text, ok := strings.CutPrefix(text, parts[0])
	for _, part := range parts[1:last] {
		if !ok {
			break
		}
		_, text, ok = strings.Cut(text, part)
	}
	return ok && strings.HasSuffix(text, parts[last])
}
