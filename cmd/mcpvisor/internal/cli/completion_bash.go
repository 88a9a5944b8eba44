package cli

import (
	"fmt"

	"github.com/spf13/cobra"
)

// bashInitScript replaces the one part of cobra's script for bash that needs the package bash-completion: splitting the line
// into words and finding the one with the cursor. Bash also splits at = and :, and this function joins what no space separates,
// since key=value and SERVER:TOOL are one word here. cobra's script calls it only where that package is not loaded.
const bashInitScript = `
__mcpvisor_init_completion()
{
    local line="${COMP_LINE}" i word
    COMPREPLY=()
    words=()
    cword=0
    for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
        word="${COMP_WORDS[i]}"
        if [[ ${#words[@]} -eq 0 || "${line}" == [[:space:]]* ]]; then
            line="${line#"${line%%[![:space:]]*}"}"
            words+=("${word}")
        else
            words[${#words[@]}-1]+="${word}"
        fi
        line="${line#"${word}"}"
        if [[ ${i} -eq ${COMP_CWORD} ]]; then
            cword=$((${#words[@]} - 1))
        fi
    done
    cur="${words[cword]}"
    prev=""
    if [[ ${cword} -gt 0 ]]; then
        prev="${words[cword-1]}"
    fi
}
`

// CompleteWithoutPackage makes "completion bash" print a script that works in every bash from 4.0 on, and gives the completion
// commands of all shells their examples.
func CompleteWithoutPackage(root *cobra.Command, o *Options) {
	c, _, err := root.Find([]string{"completion", "bash"})
	if err != nil || c.Name() != "bash" {
		return
	}
	c.Long = `Prints the completion script for bash (4.0 or newer). No other package is needed.

For this shell:          source <(mcpvisor completion bash)
For every new shell:     mcpvisor completion bash > ~/.local/share/bash-completion/completions/mcpvisor
                         with the package bash-completion, or without it in your ~/.bashrc:
                         source <(mcpvisor completion bash)`
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := cmd.Root().GenBashCompletionV2(o.Out, true); err != nil {
			return err
		}
		_, err := fmt.Fprint(o.Out, bashInitScript)
		return err
	}
	// cobra's own commands have no examples, and a test demands one of every command.
	for name, line := range map[string]string{
		"bash": "source <(mcpvisor completion bash)", "zsh": "source <(mcpvisor completion zsh)",
		"fish": "mcpvisor completion fish | source", "powershell": "mcpvisor completion powershell | Out-String | Invoke-Expression",
	} {
		if c, _, err := root.Find([]string{"completion", name}); err == nil {
			c.Example = "  " + line
		}
	}
}
