package main

import (
	"net"
	"net/url"
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
)

// page holds the conversation about a web page that a server wants the person to open.
//
// 2025-11-25, Elicitation, Safe URL Handling: "Clients implementing URL mode elicitation MUST handle URLs carefully …
// MUST NOT automatically pre-fetch the URL or any of its metadata. MUST NOT open the URL without explicit consent from
// the user. MUST show the full URL to the user for examination before consent. … SHOULD highlight the domain of the URL
// to mitigate subdomain spoofing. SHOULD have warnings for ambiguous/suspicious URIs (i.e., containing Punycode)."
func (t *talk) page(r messages.ElicitRequest, d *desk) (messages.ElicitResult, error) {
	cancel := messages.ElicitResult{Action: messages.ElicitCancel}
	t.print("\nThe server %q asks you to open a web page:\n", messages.Line(r.Server, 60))
	t.quote(r.Message)
	host, remarks, ok := judged(r.URL)
	t.print("  page: %s\n", messages.Line(r.URL, 0))
	if host != "" {
		t.print("  host: %s\n", host)
	}
	for _, remark := range remarks {
		t.print("  note: %s\n", remark)
	}
	if !ok {
		t.print("  It is not opened. The question is declined.\n")
		return messages.ElicitResult{Action: messages.ElicitDecline}, nil
	}
	t.print("Nothing has been fetched. What you do there is between you and that page; mcpvisor does not see it.\n")
	prompt, words := "[o]pen it in the browser, [a]gree and open it yourself, [d]ecline or [c]ancel?",
		[]string{"open", "agree", "decline", "cancel"}
	if !d.browser {
		prompt, words = "[a]gree and open it yourself, [d]ecline or [c]ancel?", words[1:]
	}
	word, err := t.choose(prompt, words...)
	switch {
	case err != nil || word == "cancel":
		return cancel, err
	case word == "decline":
		return messages.ElicitResult{Action: messages.ElicitDecline}, nil
	case word == "open":
		if err := d.open(r.URL); err != nil {
			t.print("  No browser could be started (%s). Open the page yourself.\n", messages.Line(err.Error(), 120))
		}
	}
	return messages.ElicitResult{Action: messages.ElicitAccept}, nil
}

// judged says of a URL which host it leads to, what a person should know about it, and whether it may be opened at all.
func judged(raw string) (host string, remarks []string, ok bool) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || raw != messages.Line(raw, 0) || strings.ContainsAny(raw, " \\\"'`<>^{|}"):
		return "", []string{"it is no well-formed URL"}, false
	case u.Scheme != "https" && u.Scheme != "http":
		return "", []string{"it is no address of the web (http or https)"}, false
	case u.Hostname() == "":
		return "", []string{"it names no host"}, false
	}
	name := strings.ToLower(u.Hostname())
	if u.User != nil {
		remarks = append(remarks, "what stands before the @ is no part of the host, and may be there to mislead you")
	}
	if strings.Contains(name, "xn--") || strings.IndexFunc(name, func(r rune) bool { return r > 0x7e }) >= 0 {
		remarks = append(remarks, "the host has letters of other alphabets, which may look like those of a host that you know")
	}
	ip := net.ParseIP(name)
	local := name == "localhost" || ip != nil && ip.IsLoopback()
	switch {
	case ip != nil && !local:
		remarks = append(remarks, "the host is a number instead of a name")
	case u.Scheme == "http" && !local:
		remarks = append(remarks, "the connection is not encrypted")
	}
	return u.Host, remarks, true
}
