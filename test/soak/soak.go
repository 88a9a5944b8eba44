package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/supervisor/control"
)

const (
	// alonePart is the part of the time in which the good server is called alone.
	alonePart = 0.1
	// round is how often one command runs and the socket is asked socketCalls times.
	round       = time.Second
	socketCalls = 20
	// patience bounds a call: no bad neighbour may come near it.
	patience = 20 * time.Second
)

// figures are what one round of looking at the process brought.
type figures struct {
	memory, descriptors int
	processor           time.Duration
}

// series are the times of the calls of the good server, and what was seen of the process that keeps it.
type series struct {
	command, socket []time.Duration
	seen            []figures
	failed          []string
}

func soak(ctx context.Context, program string, minutes float64) (faults []string, err error) {
	if program, err = exec.LookPath(program); err != nil {
		return nil, err
	}
	if program, err = filepath.Abs(program); err != nil {
		return nil, err
	}
	s, err := build()
	if s.root != "" {
		defer os.RemoveAll(s.root)
	}
	if err != nil {
		return nil, err
	}
	whole := time.Duration(minutes * float64(time.Minute))
	part := max(time.Duration(float64(whole)*alonePart), 10*time.Second)
	alone, err := s.keep(ctx, program, "alone.json", part)
	if err != nil {
		return nil, err
	}
	beside, err := s.keep(ctx, program, "all.json", max(whole-part, 20*time.Second))
	if err != nil {
		return nil, err
	}
	faults = slices.Concat(alone.failed, beside.failed, growth(beside.seen))
	faults = append(faults, compare("command", alone.command, beside.command)...)
	faults = append(faults, compare("socket", alone.socket, beside.socket)...)
	for _, process := range left(s.home) {
		faults = append(faults, "left behind: "+process)
	}
	return faults, nil
}

// keep runs a mcpvisor up and calls the good server until the time has passed.
func (s street) keep(ctx context.Context, program, file string, how time.Duration) (r series, err error) {
	up := exec.CommandContext(ctx, program, "--config", file, "up")
	up.Dir, up.Stdout, up.Stderr = s.dir, io.Discard, io.Discard
	up.Cancel = func() error { return up.Process.Signal(os.Interrupt) }
	up.WaitDelay = time.Minute
	if err := up.Start(); err != nil {
		return r, err
	}
	defer func() {
		_ = up.Process.Signal(os.Interrupt) // it may have ended
		if ended := up.Wait(); ended != nil && up.ProcessState.ExitCode() != 130 {
			err = errors.Join(err, fmt.Errorf("mcpvisor up: %w", ended))
		}
	}()
	client, err := s.dial(ctx)
	if err != nil {
		return r, err
	}
	defer client.Close()
	tick := time.NewTicker(round)
	defer tick.Stop()
	began, told := time.Now(), time.Now()
	for time.Since(began) < how {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return r, ctx.Err()
		}
		s.round(ctx, program, file, client, &r)
		r.seen = append(r.seen, look(up.Process.Pid))
		if time.Since(told) >= time.Minute || time.Since(began) >= how {
			r.tell(file, time.Since(began))
			told = time.Now()
		}
	}
	return r, nil
}

// dial waits until the up answers for the good server.
func (s street) dial(ctx context.Context) (*control.Client, error) {
	place, err := control.PlaceOf(s.dir)
	if err != nil {
		return nil, err
	}
	for until := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		client, err := control.Dial(ctx, place)
		if err == nil {
			if _, err = client.Ping(ctx, "good"); err == nil {
				return client, nil
			}
			client.Close()
		}
		if time.Now().After(until) || ctx.Err() != nil {
			return nil, err
		}
	}
}

func (s street) round(ctx context.Context, program, file string, client *control.Client, r *series) {
	bound, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	begin := time.Now()
	cmd := exec.CommandContext(bound, program, "--config", file, "call", "good", "echo", "text=x")
	cmd.Dir = s.dir
	if out, err := cmd.CombinedOutput(); err != nil && ctx.Err() == nil {
		r.failed = append(r.failed, fmt.Sprintf("call by command: %v: %s", err, out))
	}
	r.command = append(r.command, time.Since(begin))
	for range socketCalls {
		begin := time.Now()
		_, err := client.Status(bound, control.StatusQuery{Servers: []string{"good"}, Wait: patience})
		if err == nil {
			_, err = client.Call(bound, control.Call{Server: "good", Tool: "echo", Args: []byte(`{"text":"x"}`)})
		}
		if err != nil && ctx.Err() == nil {
			r.failed = append(r.failed, "call by the socket: "+err.Error())
		}
		r.socket = append(r.socket, time.Since(begin))
	}
	if len(r.failed) > 20 {
		r.failed = r.failed[:20]
	}
}
