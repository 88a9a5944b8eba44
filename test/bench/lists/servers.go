package lists

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"strconv"
	"sync"

	"github.com/mcpvisor/mcpvisor/test/servers"
	"github.com/mcpvisor/mcpvisor/test/servers/web"
)

// listServer answers from prepared bytes: the pages of a list in which the title of the first tool holds the number of the
// listing.
type listServer struct {
	// mu guards count and the first page, which writeAnswer changes.
	mu sync.Mutex
	// pages are the result objects, word is the offset of the number in the first one.
	pages [][]byte
	word  int
	count int
	// frozen keeps the list the same.
	frozen bool
}

// countWidth is the number of digits of the listing's number, fixed so that the page's length does not change.
const countWidth = 8

// newListServer prepares the pages.
func newListServer(tools, page int, frozen bool) *listServer {
	if page <= 0 {
		page = tools
	}
	s := &listServer{frozen: frozen}
	for from := 0; from < tools; from += page {
		var b bytes.Buffer
		b.WriteString(`{"tools":[`)
		for i := from; i < min(from+page, tools); i++ {
			if i > from {
				b.WriteByte(',')
			}
			word := "x"
			if i == 0 {
				word = fmt.Sprintf("%0*d", countWidth, 0)
			}
			b.WriteString(toolDefinition(i, word))
		}
		b.WriteByte(']')
		if from+page < tools {
			fmt.Fprintf(&b, `,"nextCursor":"page-%d"`, from/page+1)
		}
		b.WriteByte('}')
		s.pages = append(s.pages, b.Bytes())
	}
	s.word = bytes.Index(s.pages[0], fmt.Appendf(nil, "%0*d", countWidth, 0))
	return s
}

// writeAnswer writes the answer to a message and a newline; nothing to a notification.
func (s *listServer) writeAnswer(w io.Writer, body []byte) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Params struct {
			Cursor string `json:"cursor"`
		} `json:"params"`
	}
	if json.Unmarshal(body, &m) != nil || m.ID == nil {
		return
	}
	if m.Method != "tools/list" {
		_, _ = w.Write(append(other.Answer(body), '\n'))
		return
	}
	number := 0
	// Without a cursor the first page is meant.
	_, _ = fmt.Sscanf(m.Params.Cursor, "page-%d", &number)
	s.mu.Lock()
	defer s.mu.Unlock()
	if number == 0 && !s.frozen {
		s.count++
		copy(s.pages[0][s.word:], fmt.Appendf(nil, "%0*d", countWidth, s.count))
	}
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":`, m.ID)
	_, _ = w.Write(s.pages[min(number, len(s.pages)-1)])
	_, _ = io.WriteString(w, "}\n")
}

// other answers everything but lists.
var other = &servers.Fixed{Name: "shelf"}

// answer returns the answer to a message, nil to a notification.
func (s *listServer) answer(body []byte) []byte {
	var answer bytes.Buffer
	s.writeAnswer(&answer, body)
	return answer.Bytes()
}

// marker is the first argument of a process with a list server.
const marker = "mcpvisor-bench-lists"

// serverArgs returns the arguments with which this program becomes the server of a case.
func (c Case) serverArgs(frozen bool) []string {
	return []string{marker, c.Server, strconv.Itoa(c.Tools), strconv.Itoa(c.Page), strconv.FormatBool(frozen)}
}

// Main serves what args ask for, and exits with its input. A program that measures lists must call it first.
func Main(args []string) bool {
	if len(args) != 5 || args[0] != marker {
		return false
	}
	// serverArgs wrote these numbers.
	tools, _ := strconv.Atoi(args[2])
	page, _ := strconv.Atoi(args[3])
	s := newListServer(tools, page, args[4] == "true")
	if args[1] == "http" {
		servers.ServeChild(httptest.NewServer(web.Answers(s.answer)).URL + "/mcp")
	}
	in, out := bufio.NewReaderSize(os.Stdin, 1<<20), bufio.NewWriterSize(os.Stdout, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			os.Exit(0)
		}
		s.writeAnswer(out, line)
		// A client that closes the output closes the input too.
		_ = out.Flush()
	}
}
