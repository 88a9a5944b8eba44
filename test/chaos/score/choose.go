package score

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// ErrNoCase is wrapped by the error of [Choose], and of [Run], if a regular expression matches no case: nothing would be played, and
// nothing lost.
var ErrNoCase = errors.New("there is no such case")

// Choose returns the cases of which a regular expression matches the name, with its blanks or with underscores in their place as the
// subtests of a Go test have them, the number, or the name of a fault that the case plays. Nil chooses all.
func Choose(only *regexp.Regexp) ([]Case, error) {
	all := Cases()
	if only == nil {
		return all, nil
	}
	var words []string
	chosen := slices.DeleteFunc(slices.Clone(all), func(c Case) bool {
		known := append([]string{c.Name, strings.ReplaceAll(c.Name, " ", "_"), strconv.Itoa(c.Number)}, c.Plays...)
		words = append(words, known...)
		return !slices.ContainsFunc(known, only.MatchString)
	})
	if len(chosen) == 0 {
		return nil, fmt.Errorf("%w: %s", ErrNoCase, NoMatchText(only.String(), "name, number or fault of a case", words))
	}
	return chosen, nil
}

// NoMatchText says that a regular expression matches none of some words, and which of them was probably meant.
func NoMatchText(pattern, what string, words []string) string {
	text := fmt.Sprintf("%q matches no %s", messages.Line(pattern, 80), what)
	for part := range strings.SplitSeq(pattern, "|") {
		if near := messages.Nearest(meta.ReplaceAllString(part, ""), words); near != "" {
			return text + fmt.Sprintf("; did you mean %q?", near)
		}
	}
	return text
}

// meta are the characters of a regular expression that stand for no letter.
var meta = regexp.MustCompile(`[\^$.*+?()\[\]{}\\]`)
