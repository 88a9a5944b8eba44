module github.com/mcpvisor/mcpvisor/.ci/tools

go 1.26
