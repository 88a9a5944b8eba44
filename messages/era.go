package messages

// Era is one of the two ways in which MCP holds a conversation.
type Era string

const (
	// EraAuto (the default) finds out which era a server speaks.
	EraAuto Era = ""
	// EraLegacy is the era of the initialize handshake: versions 2024-11-05 to 2025-11-25.
	EraLegacy Era = "legacy"
	// EraModern is the stateless era: version 2026-07-28 and later. Every request says what it needs.
	EraModern Era = "modern"
)

// EraAutoWord is the word for EraAuto in a configuration and in a Spec, where an absent value means the same.
const EraAutoWord Era = "auto"
