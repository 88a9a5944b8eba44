package audit

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Version is the version of the records' form. Fields may be added within a version; none is removed or changes its meaning.
// Version 2 took another form of the arguments for Record.ArgsSHA256; every version is read, and [Record.HasArguments] checks
// the hashes of both. A record of a newer version is read as far as its members are known; [Record.IsNewer] says so.
const Version = 2

// Kind says what a Record describes.
type Kind string

const (
	// KindStart and KindEnd delimit a run: one manager, or one command that approves. A run without an end was
	// killed, or still runs. PID, Program and Project are set at the start.
	KindStart Kind = "start"
	KindEnd   Kind = "end"
	// KindCall is a tool call that has ended, or was refused before it was sent.
	KindCall Kind = "call"
	// KindRead is the read of a resource that has ended, KindPrompt the request of a prompt.
	KindRead   Kind = "read"
	KindPrompt Kind = "prompt"
	// KindAnswer is an answer of the person, or of the program, to a rule that asked about a call.
	KindAnswer Kind = "answer"
	// KindPhase is a server's move from one phase to another. Phase, Was and Epoch are set, and Reason if there is one.
	KindPhase Kind = "phase"
	// KindChange is a change of the configuration, of rules or of a server, or a refused attempt at one (Error). Change names it.
	KindChange Kind = "change"
	// KindApproval is an approval, or its withdrawal: Change and Detail describe it.
	KindApproval Kind = "approval"
	// KindLost takes the place of missing records. Lost is set.
	KindLost Kind = "lost"
)

// Kinds has all kinds.
var Kinds = []Kind{KindStart, KindEnd, KindCall, KindRead, KindPrompt, KindAnswer, KindPhase, KindChange, KindApproval, KindLost}

// Record is one line. Fields that do not belong to its kind are empty and left out.
type Record struct {
	Version int       `json:"v"`
	Time    time.Time `json:"time"`
	Kind    Kind      `json:"kind"`
	// Run is common to all records of one manager, and different from those of every other.
	Run string `json:"run"`
	// Who names the caller on whose behalf it was done: the text of supervisor.WithCaller, the caller of a message, the
	// person who typed a command. Empty if no caller was named.
	Who string `json:"who,omitempty"`
	// Via is the way by which it came: "program", "message", "socket", "command" or "file" (a configuration file changed). From is the
	// actor that sent the message; for one on another machine it is the address that it gave.
	Via  string `json:"via,omitempty"`
	From string `json:"from,omitempty"`
	// PeerPID and PeerProgram describe the process at the other end of the control socket: its program with the one that started it,
	// "mcpvisor, started by bash". They are empty where the system does not report them.
	PeerPID     int    `json:"peerPid,omitempty"`
	PeerProgram string `json:"peerProgram,omitempty"`

	Server string `json:"server,omitempty"`
	// Tool is the tool's own name. For a call of a tool that is not offered it is the name that was called.
	Tool string `json:"tool,omitempty"`
	// URI names the resource that was read, without its query, user information and parts that look like a credential, unless the
	// arguments are recorded in full. Prompt is the prompt's own name.
	URI    string `json:"uri,omitempty"`
	Prompt string `json:"prompt,omitempty"`
	// Epoch is the connection: for a call or a read, the last one that it was sent on.
	Epoch uint64 `json:"epoch,omitempty"`

	// ArgsSHA256 and Args describe the arguments, see Arguments; for a read, the hash is of {"uri": …}. Cut says that Args is missing
	// because it would be too long.
	ArgsSHA256 string          `json:"argsSha256,omitempty"`
	Args       json.RawMessage `json:"args,omitempty"`
	Cut        bool            `json:"argsCut,omitempty"`
	// Outcome is the end of the call, Millis its time in ms, waiting and questions included, Attempts the number of times it was sent.
	Outcome  messages.Outcome `json:"outcome,omitempty"`
	Millis   float64          `json:"ms,omitempty"`
	Attempts int              `json:"attempts,omitempty"`
	// Sent and Received are the sizes of the arguments and of the result, in bytes.
	Sent     int `json:"sent,omitempty"`
	Received int `json:"received,omitempty"`
	// Decision is that of the rules (allow, ask, deny) if there are any, Rule the rule that decided, if one did, Source the place where
	// it is written. Answer is the person's if they asked: no, once, session, always, or "granted" by an earlier answer.
	Decision string `json:"decision,omitempty"`
	Rule     string `json:"rule,omitempty"`
	Source   string `json:"ruleSource,omitempty"`
	Answer   string `json:"answer,omitempty"`
	// Class and Error give the reason why a call or a change did not succeed.
	Class messages.Class `json:"class,omitempty"`
	Error string         `json:"error,omitempty"`

	Phase  messages.Phase `json:"phase,omitempty"`
	Was    messages.Phase `json:"was,omitempty"`
	Reason string         `json:"reason,omitempty"`

	// Change is a word: add, replace, remove, enable, disable, reconnect, set-servers, configure, permissions, sign-in, sign-out,
	// credentials, approve, pin, tool (its definition differs from the approved one). Detail adds to it, without secrets; Added,
	// Removed and Adjusted are servers.
	Change   string   `json:"change,omitempty"`
	Detail   string   `json:"detail,omitempty"`
	Added    []string `json:"added,omitempty"`
	Removed  []string `json:"removed,omitempty"`
	Adjusted []string `json:"adjusted,omitempty"`

	PID     int    `json:"pid,omitempty"`
	Program string `json:"program,omitempty"`
	Project string `json:"project,omitempty"`

	Lost *Lost `json:"lost,omitempty"`
	// Seq rises by one for each record of a run, lost ones included.
	Seq uint64 `json:"seq,omitempty"`

	// Line is the line as it was read, without its end: a newer version may have fields that this one does not know. It is
	// set by readers and not written.
	Line json.RawMessage `json:"-"`
}

// IsNewer reports whether a newer program wrote the record: its members may mean something else than here.
func (r *Record) IsNewer() bool { return r.Version > Version }

// Lost describes records that are not written.
type Lost struct {
	Records uint64 `json:"records"`
	// From and To are the numbers of the first and the last of them; all in between are lost too.
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	// Since and Until are the times of the first and the last of them.
	Since time.Time       `json:"since"`
	Until time.Time       `json:"until"`
	Kinds map[Kind]uint64 `json:"kinds"`
	// Why is the writer's last error, if there was one.
	Why string `json:"why,omitempty"`
}

// decodeRecord reads a line. It reports false for a line that is no record.
func decodeRecord(line []byte) (r Record, ok bool) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '{' {
		return r, false
	}
	// Any JSON object could be in the file; a record has at least a version and a kind.
	if json.Unmarshal(line, &r) != nil || r.Version < 1 || r.Kind == "" {
		return Record{}, false
	}
	r.Line = line
	return r, true
}
