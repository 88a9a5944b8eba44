package session_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/test/seeds"
	"github.com/mcpvisor/mcpvisor/transports"
	"github.com/mcpvisor/mcpvisor/transports/session"
)

var update = flag.Bool("update", false, "write what happens into the stories of testdata")

// TestStories runs every file of testdata. A story has lines that act, at the left margin, and under each of them,
// indented, what the session did because of it. -update rewrites the indented lines; read the difference then.
//
//	# …                               a remark
//	dial [key=value …]                opens the session: era=auto|legacy|modern (legacy if not given) known=legacy
//	                                  versions=a,b pages=N tools=N noise=N handlers=…
//	                                  kind=sdk|http: what the transport is
//	handshake | list | ping           begins it
//	resources | templates | prompts | read URI | prompt NAME [ARGS] | complete JSON | subscribe URI | unsubscribe URI
//	                                  begins it; LABEL: before the verb tells two apart
//	call LABEL TOOL [timeout=D] [ARGS] begins a call on the gate that was opened last
//	                                  before ARGS: @progress @meta={…} @patience=SOFT,HARD @task[=TTL] @ontask
//	tasks | task ID | cancel-task ID  asks about tasks
//	task-result LABEL ID [timeout=D]  waits for the end of one
//	answer KIND JSON|denied|panic     a handler (dial handlers=sample,tools,elicit,url,roots) answers
//	leave LABEL                       the caller of a call or of the handshake stops waiting
//	gate open | gate close
//	< BODY                            the server sends a message
//	oversized SIZE HEAD | TAIL        the server sends one that is too long
//	noise N TEXT                      the server writes N lines of noise
//	fail DELIVERY key=value …         the next Send fails: class, status, text, body, scope, retry
//	block | unblock                   from now on Send blocks, or does not
//	down CLASS TEXT                   the connection ends
//	reopened                          the transport hears again, after a gap
//	close | stats | sleep D
//
// Under them: "> BODY" is sent, "! …" is a callback, anything else is how something ended.
//
// The stories run in virtual time, and after each line the test waits until every goroutine of the session is blocked,
// so that their order is exact.
func TestStories(t *testing.T) {
	seeds.Shows(t, "002.5.message", "002.5.initialize", "002.5.list-tools", "002.5.call-tool", "002.10.unit",
		"003.3.version", "003.5.spec-tests", "004.fr4.result", "004.e.unit")
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no stories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(archive.Comment) == 0 || len(archive.Files) != 1 || archive.Files[0].Name != "story" {
				t.Fatal("a story is a head of prose and one file called story")
			}
			var got []byte
			synctest.Test(t, func(t *testing.T) { got = runStory(t, string(archive.Files[0].Data)) })
			if *update {
				archive.Files[0].Data = got
				if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if want := archive.Files[0].Data; !bytes.Equal(got, want) {
				t.Errorf("the story went differently (-update rewrites it)\n--- got\n%s\n--- want\n%s", got, want)
			}
		})
	}
}

// storyRunner runs one story.
type storyRunner struct {
	t       *testing.T
	wire    *wire
	session *session.Session
	gate    *session.Gate
	leave   map[string]context.CancelFunc
	answers map[string]chan string // of handlers that wait; mu guards it
	hash    [32]byte
	failure func() (transports.Delivery, error)
	blocked bool

	// The events since the last line, each kind in its own order; the order between the kinds is the scheduler's.
	mu        sync.Mutex
	sent      []string
	callbacks []string
	outcomes  []string // sorted: every caller has its own goroutine
}

func runStory(t *testing.T, story string) []byte {
	w := &storyRunner{t: t, wire: &wire{}, leave: make(map[string]context.CancelFunc), answers: map[string]chan string{}}
	w.wire.onSend = w.sending
	var out bytes.Buffer
	for line := range strings.Lines(story) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "  ") {
			continue // what happened when it was written
		}
		fmt.Fprintln(&out, line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		w.do(line)
		synctest.Wait()
		for _, l := range w.take() {
			fmt.Fprintln(&out, "  "+l)
		}
	}
	if w.session != nil {
		if err := w.session.Close(t.Context()); err != nil {
			t.Errorf("closing after the story: %v", err)
		}
		<-w.session.Released()
	}
	return out.Bytes()
}

func (w *storyRunner) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.outcomes)
	all := slices.Concat(w.sent, w.callbacks, w.outcomes)
	w.sent, w.callbacks, w.outcomes = nil, nil, nil
	return all
}

func (w *storyRunner) note(list *[]string, format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*list = append(*list, fmt.Sprintf(format, args...))
}

func (w *storyRunner) ended(format string, args ...any) { w.note(&w.outcomes, format, args...) }

// sending records the messages that the session sends.
func (w *storyRunner) sending(ctx context.Context, m transports.Message) (transports.Delivery, error) {
	w.note(&w.sent, "> %s", m.Body)
	if m.Version != "" && !strings.Contains(string(m.Body), `"io.modelcontextprotocol/protocolVersion":"`+m.Version+`"`) &&
		m.Method != "notifications/cancelled" {
		w.t.Errorf("sent as of version %s: %s", m.Version, m.Body)
	}
	if fail := w.failure; fail != nil {
		w.failure = nil
		return fail()
	}
	if w.blocked {
		<-ctx.Done()
		return transports.MaybeWritten, &transports.Error{Class: messages.ClassOf(ctx.Err()), Text: "not written in time"}
	}
	return transports.Written, nil
}

func (w *storyRunner) do(line string) {
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "dial":
		w.dial(rest)
	case "handshake":
		w.async(verb, "", func(ctx context.Context) string {
			info, err := w.session.Handshake(ctx)
			if err != nil {
				return describe(err)
			}
			who := info.ServerInfo
			return fmt.Sprintf("version %s, negotiated %v, server {Name:%s Version:%s Title:%s}, instructions %q, capabilities %s",
				info.ProtocolVersion, w.wire.negotiated, who.Name, who.Version, who.Title, info.Instructions,
				info.Capabilities.Raw)
		})
	case "list":
		w.async(verb, "", w.list)
	case "ping":
		w.async(verb, "", func(ctx context.Context) string { return describe(w.session.Ping(ctx)) })
	case "call":
		w.call(rest)
	case "tasks":
		w.async(verb, "", func(ctx context.Context) string {
			tasks, err := w.session.Tasks(ctx)
			if err != nil {
				return describe(err)
			}
			var b strings.Builder
			fmt.Fprintf(&b, "%d tasks", len(tasks))
			for _, task := range tasks {
				fmt.Fprintf(&b, "\n    %s", describeTask(task))
			}
			return b.String()
		})
	case "task":
		w.async(verb, "", func(ctx context.Context) string {
			task, err := w.session.Task(ctx, rest)
			if err != nil {
				return describe(err)
			}
			return describeTask(task)
		})
	case "cancel-task":
		w.async(verb, "", func(ctx context.Context) string { return describe(w.session.CancelTask(ctx, rest)) })
	case "task-result":
		label, id, _ := strings.Cut(rest, " ")
		id, timeout, _ := strings.Cut(id, " timeout=")
		w.async(label, timeout, func(ctx context.Context) string {
			return ending(w.session.TaskResult(ctx, id, nil))
		})
	case "leave":
		w.leave[rest]()
	case "answer":
		kind, text, _ := strings.Cut(rest, " ")
		w.mu.Lock()
		w.answers[kind] <- text
		w.mu.Unlock()
	case "roots-changed":
		w.session.RootsChanged()
	case "gate":
		if rest == "open" {
			w.gate = w.session.OpenGate()
			return
		}
		w.gate.Close()
		w.ended("in flight: %d", w.gate.InFlight())
	case "<":
		w.wire.receive(rest)
	case "oversized":
		size, ends, _ := strings.Cut(rest, " ")
		n, err := strconv.ParseInt(size, 10, 64)
		if err != nil {
			w.t.Fatal(err)
		}
		head, tail, _ := strings.Cut(ends, " | ")
		w.wire.sink.Oversized([]byte(head), []byte(tail), n)
	case "noise":
		count, text, _ := strings.Cut(rest, " ")
		n, _ := strconv.Atoi(count)
		for range n {
			w.wire.sink.Noise([]byte(text))
		}
	case "fail":
		w.failure = failure(rest)
	case "block", "unblock":
		w.blocked = verb == "block"
	case "down":
		class, text, _ := strings.Cut(rest, " ")
		w.wire.end(&transports.Error{Class: messages.Class(class), Text: text})
		w.ended("Dead, Err: %s", describe(w.session.Err()))
	case "close":
		w.ended("close: %s, Err: %s", describe(w.session.Close(w.t.Context())), describe(w.session.Err()))
	case "stats":
		w.ended("%+v", w.session.Stats())
	case "sleep":
		d, err := time.ParseDuration(rest)
		if err != nil {
			w.t.Fatal(err)
		}
		time.Sleep(d)
	default:
		if !w.doOffer(verb, rest) {
			w.t.Fatalf("a story does not know %q", verb)
		}
	}
}

func (w *storyRunner) dial(options string) {
	cfg := session.Config{
		ClientVersion:      "1.2.3",
		Era:                messages.EraLegacy,
		OnToolsChanged:     func() { w.note(&w.callbacks, "! the tools changed") },
		OnPromptsChanged:   func() { w.note(&w.callbacks, "! the prompts changed") },
		OnResourcesChanged: func() { w.note(&w.callbacks, "! the resources changed") },
		OnResourceUpdated:  func(uri string) { w.note(&w.callbacks, "! %s was updated", uri) },
		OnLog: func(level, logger string, data json.RawMessage) {
			w.note(&w.callbacks, "! log %s %q %s", level, logger, data)
		},
	}
	if w.session != nil { // another connection
		if err := w.session.Close(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		<-w.session.Released()
		w.wire = &wire{onSend: w.sending}
	}
	for key, value := range pairs(options) {
		n, _ := strconv.Atoi(value)
		switch key {
		case "era":
			cfg.Era = messages.Era(strings.TrimPrefix(value, "auto"))
		case "handlers":
			w.handlers(&cfg, value)
		case "kind":
			w.wire.kind = messages.TransportKind(value)
		case "known":
			cfg.Known = messages.Era(value)
		case "versions":
			cfg.Versions = strings.Split(value, ",")
		case "pages":
			cfg.MaxPages = n
		case "tools":
			cfg.MaxTools = n
		case "noise":
			cfg.NoiseLimit = n
		}
	}
	s, err := session.Dial(w.t.Context(), w.wire, cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	w.session, w.gate = s, s.OpenGate()
}

// handlers registers the named handlers, separated by commas. Each waits for a line "answer KIND JSON".
func (w *storyRunner) handlers(cfg *session.Config, kinds string) {
	wait := func(ctx context.Context, kind string, asked any) (json.RawMessage, error) {
		raw, _ := json.Marshal(asked)
		w.note(&w.callbacks, "! %s %s", kind, raw)
		answer := make(chan string, 1)
		w.mu.Lock()
		w.answers[kind] = answer
		w.mu.Unlock()
		select {
		case text := <-answer:
			if text == "denied" {
				return nil, &messages.Error{Class: messages.ClassDenied, Text: "the person does not want to"}
			}
			if text == "panic" {
				panic("index out of range")
			}
			return json.RawMessage(text), nil
		case <-ctx.Done():
			w.note(&w.callbacks, "! %s is not wanted any more", kind)
			return nil, ctx.Err()
		}
	}
	for kind := range strings.SplitSeq(kinds, ",") {
		switch kind {
		case "sample":
			cfg.Handlers.Sample = func(ctx context.Context, r messages.SampleRequest) (json.RawMessage, error) {
				return wait(ctx, "sample", r)
			}
		case "tools":
			cfg.Handlers.SampleTools = true
		case "elicit":
			cfg.Handlers.Elicit = func(ctx context.Context, r messages.ElicitRequest) (res messages.ElicitResult, err error) {
				raw, err := wait(ctx, "elicit", r)
				if err == nil {
					err = json.Unmarshal(raw, &res)
				}
				return res, err
			}
		case "url":
			cfg.Handlers.ElicitURL = true
		case "roots":
			cfg.Handlers.Roots = func(ctx context.Context) (roots []messages.Root, err error) {
				raw, err := wait(ctx, "roots", nil)
				if err == nil {
					err = json.Unmarshal(raw, &roots)
				}
				return roots, err
			}
		}
	}
}

func (w *storyRunner) call(rest string) {
	label, rest, _ := strings.Cut(rest, " ")
	tool, args, _ := strings.Cut(rest, " ")
	timeout := ""
	if strings.HasPrefix(args, "timeout=") {
		timeout, args, _ = strings.Cut(args, " ")
	}
	options, clocks := &session.Options{}, [2]time.Duration{}
	for strings.HasPrefix(args, "@") {
		var option string
		option, args, _ = strings.Cut(args, " ")
		key, value, _ := strings.Cut(option[1:], "=")
		switch key {
		case "progress":
			options.Progress = func(p messages.Progress) { w.note(&w.callbacks, "! %s progress %+v", label, p) }
		case "meta":
			options.Meta = json.RawMessage(value)
		case "task":
			options.Task = &session.TaskOptions{Want: true}
			options.Task.TTL, _ = time.ParseDuration(value)
		case "ontask":
			options.OnTask = func(task messages.TaskStatus) { w.note(&w.callbacks, "! %s is a task: %s", label, describeTask(task)) }
		case "patience":
			soft, hard, _ := strings.Cut(value, ",")
			clocks[0], _ = time.ParseDuration(soft)
			clocks[1], _ = time.ParseDuration(hard)
		}
	}
	gate := w.gate
	w.async(label, strings.TrimPrefix(timeout, "timeout="), func(ctx context.Context) string {
		if clocks[0] > 0 {
			p := session.NewCallTimeout(ctx, clocks[0], clocks[1])
			defer p.Stop()
			ctx = p
		}
		return ending(gate.CallWith(ctx, tool, json.RawMessage(args), options))
	})
}

func ending(result session.Result, err error) string {
	switch {
	case err != nil:
		return describe(err)
	case result.IsError:
		return "tool-error " + string(result.Raw)
	}
	return "result " + string(result.Raw)
}

// describeTask writes the known fields of a task.
func describeTask(task messages.TaskStatus) string {
	raw, _ := json.Marshal(task)
	return string(raw)
}

// async runs an action on a goroutine and records how it ends.
func (w *storyRunner) async(label, timeout string, f func(context.Context) string) {
	ctx, leave := context.WithCancel(w.t.Context())
	if timeout != "" {
		d, err := time.ParseDuration(timeout)
		if err != nil {
			w.t.Fatal(err)
		}
		ctx, leave = context.WithTimeout(w.t.Context(), d)
	}
	w.leave[label] = leave
	began := time.Now()
	go func() {
		defer leave()
		end := f(ctx)
		if took := time.Since(began); took > 0 {
			end += fmt.Sprintf(" (after %v)", took)
		}
		w.ended("%s: %s", label, end)
	}()
}

func (w *storyRunner) list(ctx context.Context) string {
	list, err := w.session.ListTools(ctx)
	if err != nil {
		return describe(err)
	}
	hash := "a new hash"
	if list.Hash == w.hash {
		hash = "the same hash"
	}
	w.hash = list.Hash
	var b strings.Builder
	fmt.Fprintf(&b, "%d tools, %d quarantined, %s", len(list.Tools), len(list.Quarantined), hash)
	for _, tool := range list.Tools {
		annotations, _ := json.Marshal(tool.Annotations)
		fmt.Fprintf(&b, "\n    %s: %q in=%s out=%s annotations=%s",
			tool.Name, tool.Description, tool.InputSchema, tool.OutputSchema, annotations)
	}
	for _, q := range list.Quarantined {
		fmt.Fprintf(&b, "\n    quarantined %s: %s", q.Name, q.Reason)
	}
	return b.String()
}

// describe writes everything of an error that a caller can see.
func describe(err error) string {
	if err == nil {
		return "ok"
	}
	var e *messages.Error
	if !errors.As(err, &e) {
		return fmt.Sprintf("a FOREIGN error %T: %v", err, err)
	}
	var b strings.Builder
	if e.Outcome != "" {
		fmt.Fprintf(&b, "%s ", e.Outcome)
	}
	fmt.Fprintf(&b, "class=%s op=%s", e.Class, e.Op)
	if e.Tool != "" {
		fmt.Fprintf(&b, " tool=%s", e.Tool)
	}
	if e.Code != 0 || e.Data != nil {
		fmt.Fprintf(&b, " code=%d data=%s", e.Code, e.Data)
	}
	if e.Task != "" {
		fmt.Fprintf(&b, " task=%s", e.Task)
	}
	if e.Challenge != nil {
		fmt.Fprintf(&b, " challenge=%+v", *e.Challenge)
	}
	if errors.Is(err, session.ErrOnProbe) {
		b.WriteString(" on the probe")
	}
	if e.RetryAfter != 0 {
		fmt.Fprintf(&b, " retryAfter=%v", e.RetryAfter)
	}
	fmt.Fprintf(&b, " %q", e.Text)
	if e.Fix != "" {
		fmt.Fprintf(&b, " fix=%q", e.Fix)
	}
	return b.String()
}

// failure reads a line such as: written class=unauthorized status=401 text="sign in first"
func failure(line string) func() (transports.Delivery, error) {
	word, options, _ := strings.Cut(line, " ")
	delivery := map[string]transports.Delivery{
		"not-written": transports.NotWritten, "maybe-written": transports.MaybeWritten, "written": transports.Written,
	}[word]
	e := &transports.Error{}
	for key, value := range pairs(options) {
		switch key {
		case "class":
			e.Class = messages.Class(value)
		case "status":
			e.Status, _ = strconv.Atoi(value)
		case "text":
			e.Text = strings.ReplaceAll(value, "_", " ")
		case "body":
			e.Body = []byte(strings.ReplaceAll(value, "_", " "))
		case "scope":
			e.Challenge = &messages.Challenge{Scheme: "Bearer", Scope: value}
		case "retry":
			e.RetryAfter, _ = time.ParseDuration(value)
		}
	}
	return func() (transports.Delivery, error) { return delivery, e }
}

func pairs(options string) map[string]string {
	m := make(map[string]string)
	for _, field := range strings.Fields(options) {
		key, value, _ := strings.Cut(field, "=")
		m[key] = value
	}
	return m
}
