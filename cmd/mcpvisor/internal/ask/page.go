package ask

import (
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/net/idna"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/addresses"
)

// askOpenPage holds the conversation about a web page that a server wants the person to open. A URL that may mislead is
// declined without a choice. Only the person's word opens the page; an error of the browser still counts as accepted, because
// the person may open the page by hand.
//
// 2025-11-25, Elicitation, Safe URL Handling: "Clients implementing URL mode elicitation MUST handle URLs carefully …
// MUST NOT automatically pre-fetch the URL or any of its metadata. MUST NOT open the URL without explicit consent from
// the user. MUST show the full URL to the user for examination before consent. … SHOULD highlight the domain of the URL
// to mitigate subdomain spoofing. SHOULD have warnings for ambiguous/suspicious URIs (i.e., containing Punycode)."
func (t *Conversation) askOpenPage(r messages.ElicitRequest, d *Prompter) (messages.ElicitResult, error) {
	cancel := messages.ElicitResult{Action: messages.ElicitCancel}
	t.Print("\nThe server %q asks you to open a web page:\n", messages.Line(r.Server, 60))
	t.printPassage(r.Message)
	host, remarks, ok := JudgeURL(r.URL)
	t.Print("  page: %s\n", messages.Line(r.URL, maxPageURL))
	if host != "" {
		t.Print("  host: %s\n", host)
	}
	for _, remark := range remarks {
		t.Print("  note: %s\n", remark)
	}
	if !ok {
		t.Print("  It is not opened. The question is declined.\n")
		return messages.ElicitResult{Action: messages.ElicitDecline}, nil
	}
	t.Print("Nothing has been fetched. What you do there is between you and that page; mcpvisor does not see it.\n")
	prompt, words := "[o]pen it in the browser, [a]gree and open it yourself, [d]ecline or [c]ancel?",
		[]string{"open", "agree", "decline", "cancel"}
	if !d.browser {
		prompt, words = "[a]gree and open it yourself, [d]ecline or [c]ancel?", words[1:]
	}
	word, err := t.ChooseWord(prompt, words...)
	switch {
	case err != nil || word == "cancel":
		return cancel, err
	case word == "decline":
		return messages.ElicitResult{Action: messages.ElicitDecline}, nil
	case word == "open":
		if err := d.OpenPage(r.URL); err != nil {
			t.Print("  No browser could be started (%s). Open the page yourself.\n", messages.Line(err.Error(), 120))
		}
	}
	return messages.ElicitResult{Action: messages.ElicitAccept}, nil
}

// maxPageURL bounds the address of a page, in bytes, because the person must be able to see all of it.
const maxPageURL = 8192

// JudgeURL returns the host that a URL leads to, remarks that the person should read before agreeing, and whether it may be
// opened at all. The host is safe for a terminal and in the form that is sent; a name with letters of other alphabets is
// returned in both forms, so that the person can compare them.
func JudgeURL(raw string) (host string, remarks []string, ok bool) {
	u, err := url.Parse(raw)
	switch {
	case len(raw) > maxPageURL:
		return "", []string{"it is too long to be looked at"}, false
	// These characters are parsed differently by browsers, or end an argument on some systems.
	case err != nil || raw != messages.Line(raw, 0) || strings.ContainsAny(raw, " \\\"'`<>^{|}"):
		return "", []string{"it is no well-formed URL"}, false
	case u.Scheme != "https" && u.Scheme != "http":
		return "", []string{"it is no address of the web (http or https)"}, false
	case u.Hostname() == "":
		return "", []string{"it names no host"}, false
	// A browser decodes percent codes in a host, so that the host shown here would not be the one that it visits.
	case strings.Contains(urlAuthority(raw), "%") || messages.Line(u.Host, 0) != u.Host || strings.ContainsRune(u.Host, unicode.ReplacementChar):
		return "", []string{"its host holds characters that are hidden or written in percent codes"}, false
	}
	name := strings.TrimSuffix(strings.ToLower(u.Hostname()), ".")
	shown := messages.Escaped(u.Host)
	// "https://bank.example@evil.example" leads to evil.example.
	if u.User != nil {
		remarks = append(remarks, "what stands before the @ is no part of the host, and may be there to mislead you")
	}
	if strings.Contains(name, "xn--") || strings.IndexFunc(name, func(r rune) bool { return r > 0x7e }) >= 0 {
		remarks = append(remarks, "the host has letters of other alphabets, which may look like those of a host that you know")
		ascii, err := idna.Lookup.ToASCII(name)
		if err != nil {
			return shown, append(remarks, "it is no valid name of a host"), false
		}
		letters, err := idna.Lookup.ToUnicode(name)
		if err == nil && mixesAlphabets(letters) {
			remarks = append(remarks, "one word of the host mixes alphabets")
		}
		if ascii != name {
			shown += " (" + ascii + ")"
		} else if err == nil {
			shown += " (" + messages.Escaped(letters) + ")"
		}
		name = ascii
	}
	// Numbers come after the name was converted to ASCII, because full-width digits become digits there.
	ip, numeric := numericHost(name)
	kind, special := "", false
	if numeric {
		kind, special = addresses.Special(ip)
	}
	local := name == "localhost" || strings.HasSuffix(name, ".localhost") || kind == addresses.Loopback || kind == addresses.Unspecified
	if local {
		remarks = append(remarks, "it leads to this machine itself")
	} else if numeric {
		remarks = append(remarks, "the host is a number instead of a name: "+ip.String())
	}
	if special && !local {
		remarks = append(remarks, "that address is no public one ("+kind+")")
	}
	if u.Scheme == "http" && !local {
		remarks = append(remarks, "the connection is not encrypted")
	}
	return shown, remarks, true
}

// urlAuthority returns the host and port of a URL as they are written, without the user before an @. url.Parse would decode
// percent codes in it, which JudgeURL has to see.
func urlAuthority(raw string) string {
	_, rest, _ := strings.Cut(raw, "://")
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return rest[strings.LastIndexByte(rest, '@')+1:]
}

// mixesAlphabets reports whether one label of a host has letters of two alphabets that look alike, as in a Latin name with a
// Cyrillic а.
func mixesAlphabets(host string) bool {
	for label := range strings.SplitSeq(host, ".") {
		found := 0
		for _, alphabet := range []*unicode.RangeTable{unicode.Latin, unicode.Cyrillic, unicode.Greek, unicode.Armenian, unicode.Cherokee} {
			if strings.IndexFunc(label, func(r rune) bool { return unicode.Is(alphabet, r) }) >= 0 {
				found++
			}
		}
		if found > 1 {
			return true
		}
	}
	return false
}

// numericHost reads a host that is a number in any form that browsers accept: the WHATWG URL Standard, "IPv4 parser", allows
// one to four parts, each decimal, octal with a leading 0 or hexadecimal with 0x, of which the last fills the remaining bytes.
// Without it "http://2130706433" would hide that it leads to this machine.
func numericHost(name string) (netip.Addr, bool) {
	if ip, err := netip.ParseAddr(name); err == nil {
		return ip.Unmap(), true
	}
	parts := strings.Split(name, ".")
	if len(parts) > 4 {
		return netip.Addr{}, false
	}
	var value uint64
	for i, part := range parts {
		base, digits := 10, part
		if hex, ok := strings.CutPrefix(part, "0x"); ok {
			if base, digits = 16, hex; digits == "" {
				digits = "0"
			}
		} else if len(part) > 1 && part[0] == '0' {
			base = 8
		}
		n, err := strconv.ParseUint(digits, base, 32)
		last := i == len(parts)-1
		// The last of n parts fills 5-n bytes, every other part one.
		if err != nil || !last && n > 255 || last && n >= 1<<(8*(5-len(parts))) {
			return netip.Addr{}, false
		}
		if last {
			value += n
		} else {
			value += n << (8 * (3 - i))
		}
	}
	return netip.AddrFrom4([4]byte{byte(value >> 24), byte(value >> 16), byte(value >> 8), byte(value)}), true
}
