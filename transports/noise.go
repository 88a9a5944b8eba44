package transports

// noiseSize is the number of bytes of noise, which is what cannot be a message, that the sink gets at most.
const noiseSize = 256

// isMessageStart reports whether a line that begins so can be JSON-RPC: an object, or a batch.
func isMessageStart(c byte) bool { return c == '{' || c == '[' }
