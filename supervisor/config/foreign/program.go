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

// unknownFormat is a file in YAML that has servers as others do, of a program that is not among these.
const unknownFormat Format = "unknown"

// Formats are all of them but Own, sorted. It must not be changed.
var Formats []Format

// Title returns the name by which people call the program.
func (f Format) Title() string { return programs[f].title }

// Titled is the format whose Title is title; Own if there is none.
func Titled(title string) Format {
	for f, p := range programs {
		if p.title == title {
			return f
		}
	}
	return Own
}

// program is how the files of one program are read.
type program struct {
	title string
	// files are the ends of the paths under which its files are known.
	files []string
	// sections finds the lists of servers in a file.
	sections func(*fileReading)
	// entry rewrites one server. It reports false, after a problem, for what is no server that we could start.
	entry func(*entry) bool
	// words translates the variables of a text; nil leaves it as it is.
	words func(*entry, word) string
	// settings says that the file is about more than servers, so that one without servers is nothing strange.
	settings bool
}

// programs is set in init, because its functions refer to it.
var programs map[Format]program

func init() {
	programs = map[Format]program{
		ClaudeCode: {title: "Claude Code", files: []string{".claude.json"}, sections: claudeSections, entry: familyEntry,
			words: sharedWords, settings: true},
		ClaudeDesktop: {title: "Claude Desktop", files: []string{"claude_desktop_config.json"}, sections: familySections,
			entry: familyEntry, words: sharedWords, settings: true},
		VSCode: {title: "VS Code", files: []string{".vscode/mcp.json", "code/user/mcp.json", "code - insiders/user/mcp.json",
			"vscodium/user/mcp.json", ".vscode/settings.json", "code/user/settings.json", "devcontainer.json",
			".code-workspace"},
			sections: codeSections, entry: codeEntry, words: sharedWords, settings: true},
		Cursor: {title: "Cursor", files: []string{".cursor/mcp.json"}, sections: familySections, entry: familyEntry,
			words: sharedWords},
		Windsurf: {title: "Windsurf", files: []string{"mcp_config.json", "windsurf/mcp_config.json", ".codeium/mcp_config.json",
			".windsurf/mcp.json", ".windsurf/mcp_config.json"},
			sections: familySections, entry: familyEntry, words: sharedWords},
		Codex: {title: "Codex", files: []string{".codex/config.toml"}, sections: codexSections, entry: codexEntry,
			words: plainWords, settings: true},
		Gemini: {title: "Gemini CLI", files: []string{".gemini/settings.json", "gemini-extension.json"},
			sections: geminiSections, entry: geminiEntry, words: geminiWords, settings: true},
		OpenCode: {title: "opencode", files: []string{"opencode.json", "opencode.jsonc", ".opencode/config.json"},
			sections: openCodeSections, entry: openCodeEntry, words: openCodeWords, settings: true},
		Zed: {title: "Zed", files: []string{"zed/settings.json"}, sections: zedSections, entry: zedEntry,
			words: sharedWords, settings: true},
		Goose: {title: "Goose", files: []string{"goose/config.yaml", "goose/config/config.yaml"}, sections: gooseSections,
			entry: gooseEntry, words: plainWords, settings: true},
		Kiro: {title: "Kiro", files: []string{".kiro/settings/mcp.json"}, sections: familySections, entry: familyEntry,
			words: sharedWords},
		Roo: {title: "Roo Code", files: []string{".roo/mcp.json", "mcp_settings.json", ".kilocode/mcp.json"},
			sections: familySections, entry: secondsEntry, words: sharedWords},
		Cline: {title: "Cline", files: []string{"cline_mcp_settings.json"}, sections: familySections, entry: secondsEntry,
			words: sharedWords},
		Copilot: {title: "Copilot CLI", files: []string{".copilot/mcp-config.json", "mcp-config.json", ".github/mcp.json"},
			sections: familySections, entry: familyEntry, words: sharedWords},
		LMStudio: {title: "LM Studio", files: []string{".lmstudio/mcp.json", ".cache/lm-studio/mcp.json"},
			sections: familySections, entry: familyEntry, words: sharedWords},
	}
	Formats = slices.Sorted(maps.Keys(programs))
	programs[unknownFormat] = program{title: "a program that is not known here", sections: familySections, entry: familyEntry,
		words: sharedWords}
}

// formatOfName is the program that is known to keep a file under such a name.
func formatOfName(file string) Format {
	file = "/" + strings.ToLower(path.Clean(strings.ReplaceAll(file, `\`, "/")))
	best, length := Own, 0
	for _, f := range Formats {
		for _, end := range programs[f].files {
			if strings.HasSuffix(file, "/"+end) || strings.HasPrefix(end, ".code-") && strings.HasSuffix(file, end) {
				if len(end) > length {
					best, length = f, len(end)
				}
			}
		}
	}
	return best
}
