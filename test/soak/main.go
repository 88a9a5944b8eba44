package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/mcpvisor/mcpvisor/test/servers"
)

func main() {
	servers.Main(os.Args[1:]) // this program is its own servers
	program := flag.String("program", "mcpvisor", "the `mcpvisor` that is tried")
	minutes := flag.Float64("minutes", 10, "how long")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	faults, err := soak(ctx, *program, *minutes)
	stop()
	for _, f := range faults {
		fmt.Println("FAULT:", f)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
	}
	if err != nil || len(faults) > 0 {
		os.Exit(1)
	}
}
