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
	// roundInterval is the time between two rounds: in each one command runs, and the socket is asked socketCalls times.
	roundInterval = time.Second
	socketCalls   = 20
	// callTimeout bounds a call: no bad neighbour may come near it.
	callTimeout = 20 * time.Second
)

// processStats are the figures of the process in one round.
type processStats struct {
	memory, descriptors int
	processor           time.Duration
}

// measurements are the times of the calls of the good server, and what was seen of the process that keeps it.
type measurements struct {
	command, socket []time.Duration
	stats           []processStats
	failed          []string
}

// soak runs an up with the good server alone for a tenth of the time, then one with all servers, and returns what is wrong. An
// error means that it could not be measured.
func soak(ctx context.Context, program string, minutes float64) (faults []string, err error) {
	if program, err = exec.LookPath(program); err != nil {
		return nil, err
	}
	if program, err = filepath.Abs(program); err != nil {
		return nil, err
	}
	s, err := newTestSetup()
	if s.root != "" {
		defer os.RemoveAll(s.root)
	}
	if err != nil {
		return nil, err
	}
	whole := time.Duration(minutes * float64(time.Minute))
	part := max(time.Duration(float64(whole)*alonePart), 10*time.Second)
	alone, err := s.runUp(ctx, program, "alone.json", part)
	if err != nil {
		return nil, err
	}
	together, err := s.runUp(ctx, program, "all.json", max(whole-part, 20*time.Second))
	if err != nil {
		return nil, err
	}
	faults = slices.Concat(alone.failed, together.failed, checkGrowth(together.stats))
	faults = append(faults, compareLatency("command", alone.command, together.command)...)
	faults = append(faults, compareLatency("socket", alone.socket, together.socket)...)
	for _, process := range remainingProcesses(s.home) {
		faults = append(faults, "left behind: "+process)
	}
	return faults, nil
}

// runUp runs a mcpvisor up and calls the good server until the time has passed.
func (s testSetup) runUp(ctx context.Context, program, file string, how time.Duration) (r measurements, err error) {
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
	client, err := s.dialUp(ctx)
	if err != nil {
		return r, err
	}
	defer client.Close()
	tick := time.NewTicker(roundInterval)
	defer tick.Stop()
	began, printed := time.Now(), time.Now()
	for time.Since(began) < how {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return r, ctx.Err()
		}
		s.callRound(ctx, program, file, client, &r)
		r.stats = append(r.stats, readStats(up.Process.Pid))
		if time.Since(printed) >= time.Minute || time.Since(began) >= how {
			r.printProgress(file, time.Since(began))
			printed = time.Now()
		}
	}
	return r, nil
}

// dialUp waits until the up answers for the good server.
func (s testSetup) dialUp(ctx context.Context) (*control.Client, error) {
	location, err := control.LocationOf(s.dir)
	if err != nil {
		return nil, err
	}
	for until := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		client, err := control.Dial(ctx, location)
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

// callRound makes one call by the command and socketCalls by the socket. At most 20 failures are kept: the first ones tell enough.
func (s testSetup) callRound(ctx context.Context, program, file string, client *control.Client, r *measurements) {
	bound, cancel := context.WithTimeout(ctx, callTimeout)
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
		_, err := client.Status(bound, control.StatusQuery{Servers: []string{"good"}, Wait: callTimeout})
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
