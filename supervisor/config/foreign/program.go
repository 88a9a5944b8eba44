package foreign

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// Format names the form of a file by the program that owns it.
type Format string

// The formats, by the words of `mcpvisor import --from`. Own is the form of supervisor/config.
const (
	Own           Format = ""
	ClaudeCode    Format = "claude-code"
	ClaudeDesktop Format = "claude-desktop"
	VSCode        Format = "vscode"
	Cursor        Format = "cursor"
	Windsurf      Format = "windsurf"
	Codex         Format = "codex"
	Gemini        Format = "gemini"
	OpenCode      Format = "opencode"
	Zed           Format = "zed"
	Goose         Format = "goose"
	Kiro          Format = "kiro"
	Roo           Format = "roo"
	Cline         Format = "cline"
	Copilot       Format = "copilot"
	LMStudio      Format = "lmstudio"
)

// unknownFormat is the form of a YAML file that has servers under the usual keys, of a program that is not listed here.
const unknownFormat Format = "unknown"

// Formats lists all of them but Own, sorted. Callers must not change it.
var Formats []Format

// Title returns the name by which people know the program; empty for Own.
func (f Format) Title() string { return programs[f].title }

// Titled returns the format with a title; Own if there is none.
func Titled(title string) Format {
	for f, p := range programs {
		if p.title == title {
			return f
		}
	}
	return Own
}

// program says how the files of one program are read.
type program struct {
	// title is the name for people, which Parsed.Program shows.
	title string
	// files holds the ends of the paths under which its files are known, in lower case.
	files []string
	// sections finds the lists of servers in a file and calls addServers for each.
	sections func(*fileReading)
	// entry rewrites one server in place. It returns false, after a problem, for an entry that mcpvisor cannot start.
	entry func(*entry) bool
	// words translates the variables of a text into ${NAME}; with nil the text is unchanged.
	words func(*entry, word) string
	// settings means that the file holds more than servers, so that a file without servers is normal.
	settings bool
}

// programs is filled by init, because its functions refer to it.
var programs map[Format]program

// init fills programs and Formats, which do not change afterwards.
func init() {
	programs = map[Format]program{
		// Its one file holds the servers of every directory.
		ClaudeCode: {title: "Claude Code", files: []string{".claude.json"}, sections: claudeSections, entry: familyEntry,
			words: sharedWords, settings: true},
		// The file of this program also has settings of its window.
		ClaudeDesktop: {title: "Claude Desktop", files: []string{"claude_desktop_config.json"}, sections: familySections,
			entry: familyEntry, words: sharedWords, settings: true},
		// It has inputs, for which it asks the person, and its http falls back to SSE.
		VSCode: {title: "VS Code", files: []string{".vscode/mcp.json", "code/user/mcp.json", "code - insiders/user/mcp.json",
			"vscodium/user/mcp.json", ".vscode/settings.json", "code/user/settings.json", "devcontainer.json",
			".code-workspace"},
			sections: codeSections, entry: codeEntry, words: sharedWords, settings: true},
		Cursor: {title: "Cursor", files: []string{".cursor/mcp.json"}, sections: familySections, entry: familyEntry,
			words: sharedWords},
		// It writes serverUrl, which config reads as url.
		Windsurf: {title: "Windsurf", files: []string{"mcp_config.json", "windsurf/mcp_config.json", ".codeium/mcp_config.json",
			".windsurf/mcp.json", ".windsurf/mcp_config.json"},
			sections: familySections, entry: familyEntry, words: sharedWords},
		// It has TOML, replaces no variables, and names variables in lists.
		Codex: {title: "Codex", files: []string{".codex/config.toml"}, sections: codexSections, entry: codexEntry,
			words: plainWords, settings: true},
		// It replaces $NAME as well as ${NAME}, and has lists of allowed servers.
		Gemini: {title: "Gemini CLI", files: []string{".gemini/settings.json", "gemini-extension.json"},
			sections: geminiSections, entry: geminiEntry, words: geminiWords, settings: true},
		// It writes {env:NAME}, and its command is a list.
		OpenCode: {title: "opencode", files: []string{"opencode.json", "opencode.jsonc", ".opencode/config.json"},
			sections: openCodeSections, entry: openCodeEntry, words: openCodeWords, settings: true},
		// It calls the servers context_servers.
		Zed: {title: "Zed", files: []string{"zed/settings.json"}, sections: zedSections, entry: zedEntry,
			words: sharedWords, settings: true},
		// It has YAML, and keeps secrets in a store of its own.
		Goose: {title: "Goose", files: []string{"goose/config.yaml", "goose/config/config.yaml"}, sections: gooseSections,
			entry: gooseEntry, words: plainWords, settings: true},
		Kiro: {title: "Kiro", files: []string{".kiro/settings/mcp.json"}, sections: familySections, entry: familyEntry,
			words: sharedWords},
		// Its timeout counts seconds, as that of Cline does.
		Roo: {title: "Roo Code", files: []string{".roo/mcp.json", "mcp_settings.json", ".kilocode/mcp.json"},
			sections: familySections, entry: secondsEntry, words: sharedWords},
		Cline: {title: "Cline", files: []string{"cline_mcp_settings.json"}, sections: familySections, entry: secondsEntry,
			words: sharedWords},
		// Its list of tools may be ["*"], which familyEntry removes.
		Copilot: {title: "Copilot CLI", files: []string{".copilot/mcp-config.json", "mcp-config.json", ".github/mcp.json"},
			sections: familySections, entry: familyEntry, words: sharedWords},
		LMStudio: {title: "LM Studio", files: []string{".lmstudio/mcp.json", ".cache/lm-studio/mcp.json"},
			sections: familySections, entry: familyEntry, words: sharedWords},
	}
	// unknownFormat is added afterwards, because a person cannot ask for it.
	Formats = slices.Sorted(maps.Keys(programs))
	programs[unknownFormat] = program{title: "a program that is not known here", sections: familySections, entry: familyEntry,
		words: sharedWords}
}

// formatOfName returns the program that keeps files under such a name, or Own. The longest matching end wins:
// "windsurf/mcp_config.json" before "mcp_config.json".
func formatOfName(file string) Format {
	// The slash in front lets an end match a whole name only.
	file = "/" + strings.ToLower(path.Clean(strings.ReplaceAll(file, `\`, "/")))
	best, length := Own, 0
	for _, f := range Formats {
		for _, end := range programs[f].files {
			// A workspace file has any name before its ending.
			if strings.HasSuffix(file, "/"+end) || strings.HasPrefix(end, ".code-") && strings.HasSuffix(file, end) {
				if len(end) > length {
					best, length = f, len(end)
				}
			}
		}
	}
	return best
}
