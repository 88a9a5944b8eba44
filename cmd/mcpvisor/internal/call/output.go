package call

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/cli"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/terminal"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/supervisor"
	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

// attachment is a part of a tool's answer that is no text: an image, audio, or the bytes of an embedded resource.
type attachment struct {
	// kind is the media type that the server gives, empty if it gives none.
	kind  string
	bytes []byte
}

// attachmentOf reads a part of an answer; ok is false for text, links and parts of unknown types. The error says that the
// server sent bytes that are no base64.
func attachmentOf(c *supervisor.Content) (a attachment, ok bool, err error) {
	var data string
	switch c.Type {
	case "image", "audio":
		a.kind, data = c.MIMEType, c.Data
	case "resource":
		var isBlob bool
		if data, isBlob = rawjson.Text(rawjson.Member(c.Resource, "blob")); !isBlob {
			return a, false, nil
		}
		a.kind, _ = rawjson.Text(rawjson.Member(c.Resource, "mimeType"))
	default:
		return a, false, nil
	}
	if a.bytes, err = base64.StdEncoding.DecodeString(data); err != nil {
		return a, false, exit.With(exit.Failed, "the server's answer is no base64; --json prints it")
	}
	return a, true, nil
}

// writeAnswer writes a tool's answer to a file, or with "-" to standard output: the bytes of the parts that are no text, and if
// there are none the text exactly as it came. Several such parts get a number before the ending of the file's name, and
// standard output refuses them. Text beside the parts is printed.
func writeAnswer(o *cli.Options, res control.Result, path string) error {
	parts, err := (&supervisor.Result{Raw: res.Raw}).Content()
	if err != nil {
		return exit.With(exit.Failed, "the server's answer has no content that can be read; --json prints it")
	}
	var found []attachment
	var texts []string
	for i := range parts {
		a, ok, err := attachmentOf(&parts[i])
		switch {
		case err != nil:
			return err
		case ok:
			found = append(found, a)
		case parts[i].Type == "text":
			texts = append(texts, parts[i].Text)
		}
	}
	// Without attachments the text is written exactly as it came, without the newline that printing adds.
	if len(found) == 0 {
		return writeOutputFile(o, path, []byte(res.Text()))
	}
	if path == "-" && len(found) > 1 {
		return exit.With(exit.Failed, fmt.Sprintf("the answer has %s that are no text, and standard output takes one; write --output FILE",
			terminal.CountOf(len(found), "part")))
	}
	for i, a := range found {
		dest := path
		// page.png becomes page-1.png, page-2.png and so on.
		if len(found) > 1 {
			end := filepath.Ext(path)
			dest = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(path, end), i+1, end)
		}
		if err := writeOutputFile(o, dest, a.bytes); err != nil {
			return err
		}
		if path != "-" {
			o.PrintRemark("wrote %s of %s to %s", terminal.SizeText(int64(len(a.bytes))),
				mimeTypeText(&supervisor.ResourceContent{MIMEType: a.kind}), messages.Line(dest, 200))
		}
	}
	if text := messages.Printable(strings.Join(texts, "\n")); text != "" && path != "-" {
		fmt.Fprintln(o.Out, strings.TrimRight(text, "\n"))
	}
	return nil
}

// writeOutputFile writes bytes exactly as they are: to a file, or with "-" to standard output. It replaces an existing file.
func writeOutputFile(o *cli.Options, path string, bytes []byte) (err error) {
	if path == "-" {
		_, err = o.Out.Write(bytes)
	} else {
		err = os.WriteFile(path, bytes, 0o644) //nolint:gosec // the person's umask decides who may read the person's file
	}
	if err != nil {
		return exit.With(exit.Failed, "--output: "+messages.Line(err.Error(), 200))
	}
	return nil
}

// indentJSON returns JSON with an indent for a person at a terminal; "" if raw is no JSON.
func indentJSON(raw json.RawMessage) string {
	text, err := json.MarshalIndent(raw, "", "  ")
	if err != nil {
		return ""
	}
	return string(text)
}
