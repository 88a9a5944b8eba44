package lists

import (
	"fmt"
	"strings"
)

// subjects and verbs make names and texts that differ like those of real tools, so that the decoders meet realistic strings.
var (
	subjects = []string{"issue", "pull_request", "branch", "release", "workflow_run", "repository", "comment", "label", "milestone", "user"}
	verbs    = []string{"create", "get", "list", "update", "delete", "search", "merge", "close", "assign", "compare"}
)

// toolName returns the name of the tool with the number i.
func toolName(i int) string {
	return fmt.Sprintf("%s_%s_%04d", verbs[i%len(verbs)], subjects[i/len(verbs)%len(subjects)], i)
}

// toolDescription returns a description of some 200 bytes, with characters that JSON escapes.
func toolDescription(i int) string {
	verb, subject := verbs[i%len(verbs)], strings.ReplaceAll(subjects[i/len(verbs)%len(subjects)], "_", " ")
	return fmt.Sprintf("Use it to %s a %s (variant %d).\n\nReturns the \"%s\" as JSON, or an error that says what is missing. "+
		"Do not call it twice for one request: it may not be idempotent.", verb, subject, i, subject)
}

// toolSchema returns a schema of 1 to 2 KB, like those that the generators of today's servers write.
func toolSchema(i int) string {
	subject := subjects[i/len(verbs)%len(subjects)]
	var b strings.Builder
	b.WriteString(`{"type":"object","additionalProperties":false,"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{`)
	for n, name := range []string{"owner", "repo", subject + "_id", "query", "sort"} {
		fmt.Fprintf(&b, `"%s":{"type":"string","description":"The %s of the %s, as it stands in its address. Case does not count.",`+
			`"minLength":1,"maxLength":%d},`, name, name, subject, 64+n)
	}
	fmt.Fprintf(&b, `"state":{"type":"string","enum":["open","closed","merged","all"],"default":"open","description":"Which to look at"},`+
		`"per_page":{"type":"integer","minimum":1,"maximum":100,"default":30,"description":"How many on a page"},`+
		`"filter":{"type":"object","properties":{"labels":{"type":"array","items":{"type":"string"},"description":"All of these"},`+
		`"since":{"type":"string","format":"date-time"},"until":{"type":"string","format":"date-time"}},"required":["since"]},`+
		`"dry_run":{"type":["boolean","null"],"description":"Says what it would do to %s, and does nothing"}},"required":["owner","repo"]}`, subject)
	return b.String()
}

// toolDefinition returns a tool as it stands in a list. word is the part that may differ from list to list.
func toolDefinition(i int, word string) string {
	return fmt.Sprintf(`{"name":%q,"title":%q,"description":%q,"inputSchema":%s,"annotations":{"readOnlyHint":%v,"destructiveHint":%v}}`,
		toolName(i), toolName(i)+" "+word, toolDescription(i), toolSchema(i), i%10 == 1, i%10 == 4)
}
