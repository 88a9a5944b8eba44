package terminal

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// ClockTime formats a time of day for people, in local time, and with the date if it is not today.
func ClockTime(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.YearDay() == now.YearDay() && t.Year() == now.Year() {
		return t.Format("15:04:05")
	}
	return t.Format("2006-01-02 15:04:05")
}

// RelativeTime says how far away a time is, in whole seconds: "in 3s", "5s ago".
func RelativeTime(t, now time.Time) string {
	d := t.Sub(now).Round(time.Second)
	if d < 0 {
		return (-d).String() + " ago"
	}
	return "in " + d.String()
}

// CountOf joins a number and its noun, in the plural unless the number is 1: "1 server", "3 servers". Nouns take an "s".
func CountOf(n int, word string) string {
	if n != 1 {
		word += "s"
	}
	return strconv.Itoa(n) + " " + word
}

// JoinNames joins names for a sentence, and replaces those after the eighth by their number.
func JoinNames(names []string) string {
	const most = 8
	shown := make([]string, 0, most+1)
	for i, name := range names {
		if i == most {
			shown = append(shown, fmt.Sprintf("%d more", len(names)-most))
			break
		}
		shown = append(shown, messages.Line(name, 60))
	}
	return strings.Join(shown, ", ")
}

// ShellWord quotes a name so that it can be pasted into a POSIX shell. Characters that act on a terminal are replaced.
func ShellWord(s string) string {
	s = messages.Line(s, 0)
	if strings.ContainsFunc(s, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-/:@", r))
	}) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

// ShortDuration formats a duration for people, in at most three digits or so.
func ShortDuration(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// AsSentence makes a clause a sentence: a capital letter in front and a full stop at the end. Clauses begin with ASCII letters.
func AsSentence(clause string) string {
	if clause == "" {
		return ""
	}
	return strings.ToUpper(clause[:1]) + clause[1:] + "."
}

// SizeText returns a size for people, in steps of 1000.
func SizeText(n int64) string {
	switch {
	case n < 10_000:
		return fmt.Sprintf("%d B", n)
	case n < 10_000_000:
		return fmt.Sprintf("%d kB", n/1000)
	}
	return fmt.Sprintf("%d MB", n/1_000_000)
}

// OrEmpty returns an empty list for nil, so that JSON has [] and not null.
func OrEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
