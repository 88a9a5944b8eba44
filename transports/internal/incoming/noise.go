package incoming

// NoiseSize is the number of bytes of noise, which is what cannot be a message, that the sink gets at most.
const NoiseSize = 256

// IsMessageStart reports whether a line that begins so can be JSON-RPC: an object, or a batch.
func IsMessageStart(c byte) bool { return c == '{' || c == '[' }
