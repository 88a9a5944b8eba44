# Everything that is built beside the sources goes to .cache/, which git ignores.
CACHE := $(CURDIR)/.cache
BIN   := $(CACHE)/bin
GO    ?= go

.PHONY: generate
generate: $(BIN)/protogen ## regenerate messages/messages.pb.go from messages/messages.proto
	$(BIN)/protogen . messages/messages.proto

# Tools are built from the module .ci/tools, whose go.mod pins them; a changed pin rebuilds them.
$(BIN)/protogen: .ci/tools/go.mod .ci/tools/go.sum .ci/tools/protogen/main.go
	@mkdir -p $(BIN)
	cd .ci/tools && $(GO) build -o $@ ./protogen
