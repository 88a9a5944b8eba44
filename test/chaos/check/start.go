package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

// slowStart is the time from which people notice a start: several clients show nothing of a server until its list is there, and
// some give up after 10 s.
const slowStart = 5 * time.Second

// checkStarts starts the server several times, as a manager does. It returns false if there is no server to talk to.
func (s *serverCheck) checkStarts(ctx context.Context) bool {
	s.o.Progress(s.name, "its start")
	began := time.Now()
	// Half of the time for the first attempt: if it fails at the probe for the era, a second attempt without the probe must fit
	// in.
	_, err := s.measureStart(ctx, messages.EraAuto, s.connectTimeout()/2)
	if s.isProbeFailure(err) && ctx.Err() == nil {
		_, err = s.measureStart(ctx, messages.EraLegacy, s.connectTimeout())
	}
	cold := time.Since(began)
	if err != nil {
		s.addStartFailure(err)
		return false
	}
	// The first start may install packages or fill caches; a manager meets the later ones each time, so that they are judged
	// apart.
	var warm []time.Duration
	for range s.o.Starts {
		took, err := s.measureStart(ctx, s.era, s.connectTimeout())
		if err != nil {
			if ctx.Err() == nil {
				s.addFinding("start", Fail, fmt.Sprintf("it connected once, in %s, and start %d failed: %s", durationText(cold), len(warm)+2,
					messages.Line(err.Error(), 300)), "find out what one start leaves behind that the next one trips over")
			}
			return false
		}
		warm = append(warm, took)
	}
	slices.Sort(warm)
	text := fmt.Sprintf("%s the first time, then %s to %s (%d starts), from the start to the list of tools", durationText(cold),
		durationText(warm[0]), durationText(warm[len(warm)-1]), len(warm))
	verdict, fix := Pass, ""
	// The median leaves out the one start that met a busy machine.
	if median := warm[len(warm)/2]; median > slowStart {
		verdict, fix = Warn, "answer the handshake first and do the slow work afterwards: some clients give up after 10 s"
	}
	s.addFinding("start", verdict, text, fix, "coldMs", cold, "warmMs", warm[len(warm)/2])
	s.judgeVersion()
	return true
}

// isProbeFailure reports whether a first start may have failed because of the probe for the era. A manager then starts the
// server once more without it.
func (s *serverCheck) isProbeFailure(err error) bool {
	var e *messages.Error
	return errors.Is(err, session.ErrOnProbe) || s.kind == messages.Stdio && errors.As(err, &e) && e.Class == messages.ClassTimeout
}

// measureStart measures one start, from the dial to the list of tools, and learns the server's era, version and tools. known is
// the era if it is known already.
func (s *serverCheck) measureStart(ctx context.Context, known messages.Era, within time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	cfg := session.Config{ClientName: "mcpvisor-check", ClientVersion: "1", Known: known}
	if s.spec.Era == messages.EraLegacy || s.spec.Era == messages.EraModern {
		cfg.Era = s.spec.Era
	}
	// A second attempt without the probe: the server is taken for legacy because its first start failed in the probe.
	if known == messages.EraLegacy && s.era == "" {
		cfg.Era = known
	}
	began := time.Now()
	c, err := session.Dial(ctx, s.newTransport(), cfg)
	if err != nil {
		return 0, err
	}
	defer func() {
		end, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		// checkShutdown judges how the process ends.
		_ = c.Close(end)
	}()
	info, err := c.Handshake(ctx)
	if err != nil {
		return 0, err
	}
	list, err := c.ListTools(ctx)
	if err != nil {
		return 0, err
	}
	// The time ends with the list and before the close: a client can offer the tools from here on.
	took := time.Since(began)
	s.era, s.version, s.tools = info.Era, info.ProtocolVersion, list
	s.out.Era, s.out.ProtocolVersion = info.Era, info.ProtocolVersion
	s.out.Says = messages.Line(info.ServerInfo.Name+" "+info.ServerInfo.Version, 80)
	st := c.Stats()
	s.noiseCount += int(st.Noise)
	if s.noise == "" {
		s.noise = messages.Line(st.LastNoise, 80)
	}
	s.stderr = max(s.stderr, len(c.Conn().StderrTail))
	return took, nil
}

// addStartFailure records why nothing more can be checked. Missing credentials are no fault of the server.
func (s *serverCheck) addStartFailure(err error) {
	var e *messages.Error
	text, fix := err.Error(), ""
	if errors.As(err, &e) && e.Text != "" {
		text, fix = e.Text, e.Fix
		switch e.Class {
		case messages.ClassUnauthorized, messages.ClassForbidden:
			s.addFinding("start", NotTried, "it wants credentials that its entry does not hold: "+messages.Line(e.Text, 200),
				"put a token into its headers for the check; a sign-in of mcpvisor login is not used here")
			return
		case messages.ClassCanceled:
			s.addFinding("start", NotTried, "the check was interrupted", "")
			return
		}
	}
	s.addFinding("start", Fail, "it does not connect: "+messages.Line(text, 400), fix)
}

// judgeVersion judges the protocol version.
func (s *serverCheck) judgeVersion() {
	text := fmt.Sprintf("it speaks %s (the %s era)", s.version, s.era)
	if s.era == messages.EraLegacy && s.version < "2025-03-26" {
		s.addFinding("protocol", Warn, text+", which is the oldest version there is", "update its SDK: clients have begun to drop it")
		return
	}
	s.addFinding("protocol", Pass, text, "")
}

// judgeOutput judges what the processes wrote beside the conversation. 64 KiB on standard error fill a pipe that a client does
// not read.
func (s *serverCheck) judgeOutput() {
	if s.kind != messages.Stdio {
		return
	}
	if s.noiseCount > 0 {
		s.addFinding("noise", Fail, fmt.Sprintf("%d lines on standard output were no messages, such as %q", s.noiseCount, s.noise),
			"log to standard error: the specification allows nothing but messages on standard output, and some clients "+
				"drop the connection", "lines", s.noiseCount)
	} else {
		s.addFinding("noise", Pass, "nothing but messages on standard output", "")
	}
	switch {
	case s.stderr >= 64<<10:
		s.addFinding("stderr", Warn, fmt.Sprintf("%d KiB on standard error in one connection", s.stderr>>10),
			"log less by default: a client that does not read standard error stops a server whose pipe (64 KiB) is full",
			"bytes", s.stderr)
	default:
		s.addFinding("stderr", Pass, fmt.Sprintf("at most %d bytes on standard error in one connection", s.stderr), "", "bytes", s.stderr)
	}
}
