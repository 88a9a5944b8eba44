package transports

import "bytes"

// printedSize is how much is kept of what a child prints to standard output before its first message.
const printedSize = 4 << 10

// onMessage hands on what begins as a message does. A line of a log begins so, too: "[ERROR] no token", or an object of
// JSON. What has the member that every message must have counts as the child's first message, and what was printed
// before it is forgotten: it was no reason to end.
func (c *stdioConn) onMessage(body []byte) {
	if !c.spoke.Load() {
		if bytes.Contains(body, []byte(`"jsonrpc"`)) {
			c.spoke.Store(true)
			c.printed.forget()
		} else {
			c.print(c.hide.beginning(string(c.lines.start(body)), noiseSize))
		}
	}
	c.sink.Message(body)
}

func (c *stdioConn) onNoise(line []byte) {
	c.noise.Add(1)
	text := c.hide.beginning(string(line), noiseSize) // a copy: line is a part of the reader's buffer
	if !c.spoke.Load() {
		c.print(text)
	}
	c.sink.Noise([]byte(text))
}

// print keeps a line of a child that has not spoken yet: many a program says on standard output why it ends. It is kept
// apart from standard error, where it could cut a secret in two that comes in pieces.
func (c *stdioConn) print(line string) { c.printed.write([]byte(line + "\n")) }
