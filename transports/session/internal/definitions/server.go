package definitions

import (
	"strings"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
)

// ReadServerInfo reads serverInfo. Members of a wrong type stay empty, because no decision rests on them: they are shown to people,
// who escape and cut them where they print them.
func ReadServerInfo(raw []byte) (info messages.ServerInfo) {
	if !rawjson.IsObject(raw) {
		return info
	}
	m := rawjson.ObjectAt(raw, 0, 0)
	for m.Next() {
		value := m.Skip()
		switch string(m.Name) {
		case "name":
			info.Name, _ = rawjson.Text(value)
		case "version":
			info.Version, _ = rawjson.Text(value)
		case "title":
			info.Title, _ = rawjson.Text(value)
		case "description":
			info.Description, _ = rawjson.Text(value)
		case "websiteUrl":
			info.WebsiteURL, _ = rawjson.Text(value)
		case "icons":
			info.Icons = readIcons(value)
		}
	}
	return info
}

// maxIcons bounds the icons that are kept of one server, tool, prompt or resource; more are dropped.
const maxIcons = 16

// readIcons reads a list of icons and keeps those whose source is safe.
//
// 2026-07-28, icons: "Ensure that the icon URI is either a HTTPS or data: URI. Clients MUST reject icon URIs that use unsafe
// schemes and redirects, such as javascript:, file:, ftp:, ws:, or local app URI schemes."
func readIcons(raw []byte) (icons []messages.Icon) {
	if !rawjson.IsArray(raw) {
		return nil
	}
	list := rawjson.ArrayAt(raw, 0, 0)
	for list.Next() {
		value := list.Skip()
		// One broken icon does not cost the others.
		if !rawjson.IsObject(value) || len(icons) == maxIcons {
			continue
		}
		var icon messages.Icon
		m := rawjson.ObjectAt(value, 0, 0)
		for m.Next() {
			value := m.Skip()
			switch string(m.Name) {
			case "src":
				icon.Src, _ = rawjson.Text(value)
			case "mimeType":
				icon.MIMEType, _ = rawjson.Text(value)
			case "sizes":
				// At most 32 sizes are kept; each is a text such as 48x48 or any.
				icon.Sizes = jsonrpc.TextsOf(value, 32)
			case "theme":
				icon.Theme, _ = rawjson.Text(value)
			}
		}
		// An icon without a usable source is dropped whole: its other members describe a picture that nothing can fetch.
		if safeIcon(icon.Src) {
			icons = append(icons, icon)
		}
	}
	return icons
}

// safeIcon reports whether src has one of the two schemes that the specification allows. It lists the safe schemes, because
// the list of unsafe ones is never complete.
func safeIcon(src string) bool {
	for _, scheme := range []string{"https://", "data:"} {
		if len(src) > len(scheme) && strings.EqualFold(src[:len(scheme)], scheme) {
			return true
		}
	}
	return false
}
