package stdio

import (
	"bytes"

	"github.com/mcpvisor/mcpvisor/transports/internal/incoming"
)

// printedSize bounds in bytes what is kept of a child's standard output before its first message.
const printedSize = 4 << 10

// notePrinted looks at a line that begins as a message does, before the child's first message. A line of a log may begin so, too:
// "[ERROR] no token", or an object in JSON. A line with the member "jsonrpc", which every message must have, counts as the first
// message, and the lines before it are forgotten, because the child did not end after them.
func (c *connection) notePrinted(line []byte) {
	if bytes.Contains(line, []byte(`"jsonrpc"`)) {
		c.gotMessage.Store(true)
		c.earlyStdout.clearText()
		return
	}
	c.keepPrinted(c.redactor.RedactStart(string(c.lines.NoisePart(line)), incoming.NoiseSize))
}

// onNoise gives the sink a line that cannot be a message, and keeps it if the child has not sent a message yet.
func (c *connection) onNoise(line []byte) {
	c.noise.Add(1)
	// The conversion copies, because line is a part of the reader's buffer.
	text := c.redactor.RedactStart(string(line), incoming.NoiseSize)
	if !c.gotMessage.Load() {
		c.keepPrinted(text)
	}
	c.sink.Noise([]byte(text))
}

// keepPrinted keeps a line of a child that has sent no message yet: many programs say on standard output why they end. It is kept
// apart from standard error, where it could come between two halves of a secret, which would not be found then.
func (c *connection) keepPrinted(line string) { c.earlyStdout.write([]byte(line + "\n")) }
