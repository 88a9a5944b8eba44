package main

import (
	"context"
	"errors"

	"github.com/mcpvisor/mcpvisor/supervisor"
)

// config is how this program wants its manager.
func (c *client) config() supervisor.Config { return supervisor.Config{} }

// useAll uses everything that a server offers once: tools, resources and prompts.
func (c *client) useAll(ctx context.Context) error { return c.callAll(ctx) }

// rounds calls tools that ask for input.
func (c *client) rounds(context.Context) error { return errors.New("not built") }
