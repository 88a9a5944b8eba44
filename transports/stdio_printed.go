package transports

import "bytes"

// printedSize is how much is kept of what a child prints to standard output before its first message.
const printedSize = 4 << 10

// onMessage hands on what begins as a message does. A line of a log begins so, too: "[ERROR] no token", or an object of
// JSON. What has the member that every message must have counts as the child's first message, and what was printed
// before it is forgotten: it was no reason to end.
func (c *stdioConn) onMessage(body []byte) {
	if !c.gotMessage.Load() {
		if bytes.Contains(body, []byte(`"jsonrpc"`)) {
			c.gotMessage.Store(true)
			c.earlyStdout.clearText()
		} else {
			c.keepPrinted(c.redactor.redactStart(string(c.lines.noisePart(body)), noiseSize))
		}
	}
	c.sink.Message(body)
}

func (c *stdioConn) onNoise(line []byte) {
	c.noise.Add(1)
	text := c.redactor.redactStart(string(line), noiseSize) // a copy: line is a part of the reader's buffer
	if !c.gotMessage.Load() {
		c.keepPrinted(text)
	}
	c.sink.Noise([]byte(text))
}

// keepPrinted keeps a line of a child that has not spoken yet: many a program says on standard output why it ends. It is kept
// apart from standard error, where it could cut a secret in two that comes in pieces.
func (c *stdioConn) keepPrinted(line string) { c.earlyStdout.write([]byte(line + "\n")) }
