package connect

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/daemon/client"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
)

// stage is a carrier between an agent, which the test plays, and daemons of its own: one on each connection, which answers every request
// with the name of its directory.
type stage struct {
	t *testing.T
	c *carrier
	// toBridge is what the agent writes, heard what it reads.
	toBridge *io.PipeWriter
	heard    chan string
	ended    chan error

	// mu guards the fields below: each attempt to find a daemon has a goroutine of its own, and so has the agent that reads.
	mu sync.Mutex
	// questions counts those for the agent's roots, the newest of which has this number.
	questions int
	// dialed are the directories that were asked for, refused those that cannot be had, and warned what standard error got.
	dialed  []string
	refused map[string]bool
	warned  []string
	// daemon is the far side of the newest connection, and fleeting says that the next ones end as soon as they are found.
	daemon   half
	fleeting bool
	// short is how many of the next attempts find no descriptors.
	short int
}

// begin starts a carrier in a bubble, in a directory, and shakes hands for an agent with roots.
func begin(t *testing.T, dir string, prepare ...func(s *stage)) *stage {
	in, toBridge := io.Pipe()
	fromBridge, out := io.Pipe()
	s := &stage{t: t, toBridge: toBridge, heard: make(chan string, 10_000), refused: map[string]bool{}, ended: make(chan error, 1)}
	s.c = &carrier{workDir: dir, in: in, out: out, warn: func(text string) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.warned = append(s.warned, text)
	}}
	s.c.bridge.roots.follow = true
	for _, f := range prepare {
		f(s)
	}
	s.c.dial = func(_ context.Context, dir string, _ time.Time) (net.Conn, *bufio.Reader, []string, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.dialed = append(s.dialed, filepath.Base(dir))
		if s.short > 0 {
			s.short--
			return nil, nil, nil, &messages.Error{Op: "connect", Text: "the daemon of mcpvisor cannot be started", Err: syscall.EMFILE}
		}
		if s.refused[filepath.Base(dir)] {
			return nil, nil, nil, errors.New("no daemon for you")
		}
		near, far := halves()
		if s.daemon = far; s.fleeting {
			_ = far.Close()
			return near, bufio.NewReader(near), nil, nil
		}
		go answerAll(far, filepath.Base(dir))
		return near, bufio.NewReader(near), nil, nil
	}
	go func() { // it ends with the carrier
		r := bufio.NewReader(fromBridge)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			s.mu.Lock()
			if readEnvelope([]byte(line)).methodName() == "roots/list" {
				s.questions++
			}
			s.mu.Unlock()
			s.heard <- strings.TrimSpace(line)
		}
	}()
	go func() { s.ended <- s.c.carryLines(t.Context()) }()
	s.says(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"capabilities":{"roots":{}}}}`)
	s.says(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return s
}

// half is one end of a connection each of whose sides ends by itself, as those of a socket do.
type half struct {
	net.Conn // nil: what is not here is not used
	r        *io.PipeReader
	w        *io.PipeWriter
}

func (h half) Read(p []byte) (int, error)  { return h.r.Read(p) }
func (h half) Write(p []byte) (int, error) { return h.w.Write(p) }
func (h half) Close() error                { return errors.Join(h.w.Close(), h.r.Close()) }

// halves returns both ends of a connection.
func halves() (near, far half) {
	r1, w1 := io.Pipe()
	r2, w2 := io.Pipe()
	return half{r: r1, w: w2}, half{r: r2, w: w1}
}

// answerAll is a daemon: each request gets the name as its answer, and "wait" gets it after a minute. It ends when its peer says that nothing
// follows.
func answerAll(conn half, name string) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		if strings.TrimSpace(string(line)) == client.DrainedLine {
			return
		}
		e := readEnvelope(line)
		if !e.isRequest() {
			continue
		}
		if e.methodName() == "wait" {
			time.Sleep(time.Minute)
		}
		if _, err := fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":%s,"result":{"capabilities":{"tools":{}},"dir":%q}}`+"\n", e.id, name); err != nil {
			return
		}
	}
}

// changeDaemons changes what the next attempts find.
func (s *stage) changeDaemons(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// rootQuestions returns how often the agent was asked for its roots.
func (s *stage) rootQuestions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.questions
}

// directoriesAsked returns the directories that were asked for.
func (s *stage) directoriesAsked() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.dialed)
}

// warningsSoFar returns what standard error got.
func (s *stage) warningsSoFar() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.warned)
}

// loseDaemon ends the connection to the present daemon.
func (s *stage) loseDaemon() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.daemon.Close()
}

// says writes a line of the agent, and waits until everything has come of it.
func (s *stage) says(line string) {
	s.t.Helper()
	if _, err := io.WriteString(s.toBridge, line+"\n"); err != nil {
		s.t.Fatal(err)
	}
	synctest.Wait()
}

// hears returns what the agent has got since it was last asked.
func (s *stage) hears() (all []string) {
	for {
		select {
		case line := <-s.heard:
			all = append(all, line)
		default:
			return all
		}
	}
}

// answersRoots answers the newest question for roots.
func (s *stage) answersRoots(uris ...string) {
	s.t.Helper()
	s.says(fmt.Sprintf(`{"jsonrpc":"2.0","id":"mcpvisor-connect-roots-%d","result":{"roots":[{"uri":"%s"}]}}`, s.rootQuestions(),
		strings.Join(uris, `"},{"uri":"`)))
	time.Sleep(10 * time.Millisecond) // the file system is outside of the bubble
	synctest.Wait()
}

// where returns the directory whose servers answer.
func (s *stage) where() string {
	s.t.Helper()
	s.hears()
	s.says(`{"jsonrpc":"2.0","id":"where","method":"tools/list"}`)
	for _, line := range s.hears() {
		if dir, ok := rawjson.Text(rawjson.Member(rawjson.Member([]byte(line), "result"), "dir")); ok {
			return dir
		}
	}
	return ""
}

// ends ends the agent, and waits for the carrier.
func (s *stage) ends() {
	s.t.Helper()
	_ = s.toBridge.Close()
	if err := <-s.ended; err != nil {
		s.t.Error(err)
	}
	_ = s.c.out.(io.Closer).Close()
	_ = s.c.in.(io.Closer).Close()
}

// directories makes directories and returns the one in which they lie.
func directories(t *testing.T, names ...string) string {
	t.Helper()
	root := t.TempDir()
	for _, name := range names {
		if err := os.Mkdir(filepath.Join(root, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// The first root that is a directory of this machine is where the agent works. A file, what is not there, another machine and thousands of
// others are passed over; a link to where the agent is already is no move; without a root it is back where it began.
func TestTheFirstDirectoryOfTheRoots(t *testing.T) {
	root := directories(t, "home", "a", "b")
	file := filepath.Join(root, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{"link-a": "a", "link-nowhere": "nothing", "link-itself": "link-itself"} {
		if err := os.Symlink(filepath.Join(root, target), filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	uri := func(name string) string { return "file://" + root + "/" + name }
	many := make([]string, 0, 20_000)
	for i := range cap(many) {
		many = append(many, uri(fmt.Sprint("none-", i)))
	}
	long := "file:///" + strings.Repeat("a", 1<<20)
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, filepath.Join(root, "home"))
		if got := s.where(); got != "home" {
			t.Fatalf("it begins in %s", got)
		}
		for _, step := range []struct {
			roots []string
			want  string
		}{
			{[]string{uri("a"), uri("b")}, "a"},
			{[]string{uri("link-a")}, "a"},
			{[]string{uri("link-nowhere"), uri("link-itself"), uri("file"), uri("nothing"), "vscode-remote://wsl/home", long, uri("b")}, "b"},
			{append(many, uri("a")), "home"},
			{[]string{uri("link-a")}, "link-a"},
			{nil, "home"},
		} {
			time.Sleep(2 * time.Second)
			s.says(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
			s.answersRoots(step.roots...)
			if got := s.where(); got != step.want {
				t.Errorf("%d roots lead to %s, not %s", len(step.roots), got, step.want)
			}
		}
		if got := fmt.Sprint(s.directoriesAsked()); got != "[home a b home link-a home]" {
			t.Errorf("asked for the servers of %s", got)
		}
		s.ends()
	})
}

// An agent that says without pause that its roots have changed is asked once a second, and starts servers no more often.
func TestRootsThatChangeWithoutPause(t *testing.T) {
	root := directories(t, "home", "a", "b")
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, filepath.Join(root, "home"))
		answered := 0
		for i := range 1000 {
			s.says(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
			if n := s.rootQuestions(); n > answered {
				answered = n
				s.answersRoots("file://" + root + "/" + []string{"a", "b"}[i%2])
			}
			time.Sleep(10 * time.Millisecond)
		}
		if answered < 9 || answered > 12 || len(s.directoriesAsked()) > answered+1 {
			t.Errorf("in ten seconds it was asked %d times, and moved to %v", answered, s.directoriesAsked())
		}
		s.ends()
	})
}

// What runs ends where it began, also if the agent moves, and goes; a further move waits for it.
func TestCallsStayWhereTheyBegan(t *testing.T) {
	root := directories(t, "home", "a", "b")
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, filepath.Join(root, "home"))
		s.says(`{"jsonrpc":"2.0","id":"slow","method":"wait"}`)
		s.answersRoots("file://" + root + "/a")
		if got := s.where(); got != "a" {
			t.Errorf("it is in %s", got)
		}
		time.Sleep(2 * time.Second)
		s.says(`{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`)
		s.answersRoots("file://" + root + "/b")
		if got := s.where(); got != "a" {
			t.Errorf("while a call of home runs it has moved to %s", got)
		}
		s.hears()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := strings.Join(s.hears(), "\n"); !strings.Contains(got, `"id":"slow","result":{"capabilities":{"tools":{}},"dir":"home"}`) {
			t.Errorf("the call of home: %s", got)
		}
		if got := s.where(); got != "b" {
			t.Errorf("after the call of home it is in %s", got)
		}
		s.says(`{"jsonrpc":"2.0","id":"last","method":"wait"}`)
		_ = s.toBridge.Close()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := strings.Join(s.hears(), "\n"); strings.Contains(got, `"id":"last"`) { // it takes a minute, and the agent has gone
			t.Errorf("an agent that has gone was waited for longer than half a minute: %s", got)
		}
		s.ends()
	})
}

// A directory whose servers cannot be had leaves the agent with those that it has, and is tried again.
func TestRootsWithoutServers(t *testing.T) {
	root := directories(t, "home", "a")
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, filepath.Join(root, "home"))
		s.changeDaemons(func() { s.refused["a"] = true })
		s.answersRoots("file://" + root + "/a")
		time.Sleep(10 * time.Second)
		if got, warnings := s.where(), s.warningsSoFar(); got != "home" || len(warnings) != 1 || !strings.Contains(warnings[0], "/a, which the agent's roots name") {
			t.Errorf("it is in %q, and standard error has %q", got, warnings)
		}
		if n := len(s.directoriesAsked()); n < 5 || n > 15 {
			t.Errorf("it was tried %d times", n)
		}
		s.changeDaemons(func() { delete(s.refused, "a") })
		time.Sleep(3 * time.Second)
		if got := s.where(); got != "a" {
			t.Errorf("then it is in %s", got)
		}
		s.ends()
	})
}

// An agent that never answers, or with megabytes, is served all the same.
func TestRootsThatNeverCome(t *testing.T) {
	root := directories(t, "home")
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, filepath.Join(root, "home"))
		time.Sleep(time.Hour)
		if got := s.where(); got != "home" {
			t.Errorf("it is in %q", got)
		}
		s.says(`{"jsonrpc":"2.0","id":"mcpvisor-connect-roots-1","result":{"roots":[` + string(bytes.Repeat([]byte("["), 8<<20)))
		if got := s.where(); got != "home" {
			t.Errorf("after half an answer it is in %q", got)
		}
		s.ends()
	})
}

// TestDaemonsThatEndAtOnceAreNoStorm: what ends each daemon as soon as it is found is not met with one daemon after the other without pause. One
// that has lasted is followed at once.
func TestDaemonsThatEndAtOnceAreNoStorm(t *testing.T) {
	root := directories(t, "home")
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, filepath.Join(root, "home"))
		lose := func() (dialed int) {
			time.Sleep(time.Minute)
			before := len(s.directoriesAsked())
			s.loseDaemon()
			time.Sleep(time.Millisecond)
			return len(s.directoriesAsked()) - before
		}
		s.changeDaemons(func() { s.fleeting = true })
		if n := lose(); n != 1 {
			t.Errorf("%d daemons were looked for at once", n)
		}
		before := len(s.directoriesAsked())
		time.Sleep(20 * time.Second)
		if n := len(s.directoriesAsked()) - before; n < 10 || n > 16 { // 50, 100 … 1600 ms, and then each 2 s
			t.Errorf("%d daemons in 20 s", n)
		}
		s.changeDaemons(func() { s.fleeting = false })
		time.Sleep(lastRetry)
		if got := s.where(); got != "home" {
			t.Errorf("with a daemon that lasts it is in %q", got)
		}
		if n := lose(); n != 1 || s.where() != "home" {
			t.Errorf("a daemon that has lasted is followed by %d", n)
		}
		s.ends()
	})
}

// TestAnAgentThatStartsInAShortage: an agent whose bridge found no descriptors at its first attempt got an error as the answer to initialize, and
// was without servers for good. It is served now if the shortage is over within a few seconds, and else told what to do.
func TestAnAgentThatStartsInAShortage(t *testing.T) {
	root := directories(t, "home")
	for attempts, wanted := range map[int]string{4: `"result"`, 1000: "ulimit -n"} {
		synctest.Test(t, func(t *testing.T) {
			s := begin(t, filepath.Join(root, "home"), func(s *stage) { s.short = attempts })
			if got := s.hears(); len(got) > 0 {
				t.Errorf("the first attempt has failed, and the agent got %q", got)
			}
			time.Sleep(2 * shortageTime)
			synctest.Wait()
			if got := strings.Join(s.hears(), "\n"); !strings.Contains(got, `"id":0`) || !strings.Contains(got, wanted) {
				t.Errorf("after %d attempts without descriptors the agent got %q", attempts, got)
			}
			s.changeDaemons(func() { s.short = 0 })
			time.Sleep(2 * lastRetry)
			s.says(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
			if got := strings.Join(s.hears(), "\n"); !strings.Contains(got, `"result"`) {
				t.Errorf("afterwards it got %q", got)
			}
			s.ends()
		})
	}
}

// TestADaemonThatEndsIsLeftAtOnce: what an agent asked while the daemon answered a long call before its end waited for that call, for ten seconds
// at most. The next daemon answers it now, and the call is answered by the one that has it.
func TestADaemonThatEndsIsLeftAtOnce(t *testing.T) {
	root := directories(t, "home")
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, filepath.Join(root, "home"))
		time.Sleep(time.Minute) // a daemon that has lasted
		s.says(`{"jsonrpc":"2.0","id":"long","method":"wait"}`)
		s.hears()
		if _, err := io.WriteString(s.daemon, client.DrainLine+"\n"); err != nil {
			t.Fatal(err)
		}
		asked := time.Now()
		s.says(`{"jsonrpc":"2.0","id":"next","method":"tools/call"}`)
		if got := strings.Join(s.hears(), "\n"); !strings.Contains(got, `"id":"next"`) {
			t.Errorf("%s after the announcement the agent has %q", time.Since(asked), got)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := strings.Join(s.hears(), "\n"); strings.Count(got, `"id":"long"`) != 1 || strings.Contains(got, "outcome") {
			t.Errorf("of the long call came %q", got)
		}
		if n := len(s.directoriesAsked()); n != 2 {
			t.Errorf("%d daemons were looked for", n)
		}
		s.ends()
	})
}

// TestAnIdleAgentStartsNoDaemonThatAPersonHasEnded: mcpvisor down ended the daemon, and the next idle agent started one at once. Now an agent's
// next request does, and a daemon that ends for another reason is followed at once.
func TestAnIdleAgentStartsNoDaemonThatAPersonHasEnded(t *testing.T) {
	root := directories(t, "home")
	for name, test := range map[string]struct {
		line, open   string
		idle, asking int
	}{
		"a person":                    {client.StopLine, "", 1, 2},
		"a person, while it answers":  {client.StopLine, `{"jsonrpc":"2.0","id":"long","method":"wait"}`, 1, 2},
		"a newer daemon":              {client.DrainLine, "", 2, 2},
		"a newer one, while answers":  {client.DrainLine, `{"jsonrpc":"2.0","id":"long","method":"wait"}`, 2, 2},
		"without a word":              {"", "", 2, 2},
		"a person, in other's words":  {`{"next":"asked","mcpvisor":"draining"}`, "", 1, 2},
		"a word that is not known":    {`{"mcpvisor":"draining","next":"x"}`, "", 2, 2},
		"no announcement but a lie":   {`{"mcpvisor":"other","next":"asked"}`, "", 2, 2},
		"a person, and a notice came": {client.StopLine, `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, 1, 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := begin(t, filepath.Join(root, "home"))
				time.Sleep(time.Minute)
				if test.open != "" {
					s.says(test.open)
				}
				s.hears()
				s.mu.Lock()
				daemon := s.daemon
				s.mu.Unlock()
				if test.line != "" {
					if _, err := io.WriteString(daemon, test.line+"\n"); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(2 * time.Minute)
				_ = daemon.Close()
				time.Sleep(time.Hour)
				synctest.Wait()
				if n := len(s.directoriesAsked()); n != test.idle {
					t.Errorf("an idle agent has looked for %d daemons", n)
				}
				s.says(`{"jsonrpc":"2.0","id":"next","method":"tools/call"}`)
				if got := strings.Join(s.hears(), "\n"); !strings.Contains(got, `"id":"next"`) {
					t.Errorf("its next request got %q", got)
				}
				if n := len(s.directoriesAsked()); n != test.asking {
					t.Errorf("an agent that asks has looked for %d daemons", n)
				}
				s.ends()
			})
		})
	}
}

// TestAMessageThatIsTooLargeIsAnswered has an agent send messages that the daemon would not take: each has its answer, by its id where that
// can be read, and the agent goes on. Before, the bridge waited for the answer of the daemon, which has no id, and read nothing more.
func TestAMessageThatIsTooLargeIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, t.TempDir())
		s.hears()
		for _, c := range []struct {
			name, line, want string
		}{
			{"a call", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"x":"` + strings.Repeat("y", maxMessage) + `"}}`, `"id":7,"error":{"code":-32600`},
			{"no object", "[" + strings.Repeat("1,", maxMessage/2) + "1]", `"id":null,"error":{"code":-32600`},
			{"what is not read at all", `{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"x":"` + strings.Repeat("y", maxLine) + `"}}`,
				`"id":null,"error":{"code":-32600`},
		} {
			s.says(c.line)
			if got := s.hears(); len(got) != 1 || !strings.Contains(got[0], c.want) {
				t.Errorf("%s: %.200q", c.name, got)
			}
		}
		s.says(`{"jsonrpc":"2.0","method":"notifications/x","params":{"x":"` + strings.Repeat("y", maxMessage) + `"}}`)
		s.says(`{"jsonrpc":"2.0","id":9,"method":"tools/list"}`)
		if got := s.hears(); len(got) != 1 || !strings.Contains(got[0], `"id":9,"result"`) {
			t.Errorf("what comes behind them: %.200q", got)
		}
		if n := len(s.c.bridge.open); n > 0 {
			t.Errorf("%d requests are open", n)
		}
		s.ends()
	})
}

// TestAnAgentIsNotReadWhileItsDaemonTakesNothing: what an agent sends waits for a daemon that is busy up to a bound, and beyond it in the agent.
// Nothing is lost.
func TestAnAgentIsNotReadWhileItsDaemonTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := begin(t, t.TempDir())
		s.says(`{"jsonrpc":"2.0","id":"busy","method":"wait"}`)
		s.hears()
		const size, lines = 1 << 20, 3 * maxWaiting >> 20
		var written atomic.Int64
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for i := range lines {
				line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"x","params":{"x":"%s"}}`+"\n", i, strings.Repeat("y", size))
				if _, err := io.WriteString(s.toBridge, line); err != nil {
					return
				}
				written.Add(1)
			}
		}()
		synctest.Wait()
		if n := written.Load(); n < maxWaiting/size || n > maxWaiting/size+4 {
			t.Errorf("%d MiB wait for a daemon that is busy", n)
		}
		<-ended
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := s.hears(); len(got) != lines+1 {
			t.Errorf("%d answers to %d requests", len(got), lines+1)
		}
		s.ends()
	})
}

// A daemon that ends gets the word that nothing more comes, and the agent hears none of that.
func TestTheWordOfADaemonThatEndsIsAnswered(t *testing.T) {
	for _, word := range []string{client.DrainLine, client.StopLine} {
		out := new(carrier).receiveFormer([]byte(word), true)
		if len(out.toFormer) != 1 || string(out.toFormer[0]) != client.DrainedLine || len(out.toAgent) != 0 || len(out.toDaemon) != 0 {
			t.Errorf("%s: %q to the daemon, %q to the agent", word, out.toFormer, out.toAgent)
		}
	}
}
