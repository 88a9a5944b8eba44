package audit

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
)

// Version is that of the form of records. Fields may be added in one version; none is taken away or means something else.
const Version = 1

// Kind says what a Record tells.
type Kind string

const (
	// KindStart and KindEnd frame a run: one manager, or one command that approves something. A run without an end was
	// killed, or still goes on. PID, Program and Project are set at the start.
	KindStart Kind = "start"
	KindEnd   Kind = "end"
	// KindCall is a tool call that has ended, or was refused before it was sent.
	KindCall Kind = "call"
	// KindRead is the read of a resource that has ended, KindPrompt the request of a prompt.
	KindRead   Kind = "read"
	KindPrompt Kind = "prompt"
	// KindAnswer is an answer of a person, or of the program, to a rule that asked about a call.
	KindAnswer Kind = "answer"
	// KindPhase is a server that moved from one phase to another. Phase, Was and Epoch are set, and Reason if there is one.
	KindPhase Kind = "phase"
	// KindChange is a change of the configuration, of rules or of a server: Change says which, Error that it was refused.
	KindChange Kind = "change"
	// KindApproval is an approval, or its withdrawal: Change and Detail say of what.
	KindApproval Kind = "approval"
	// KindLost stands where records are missing. Lost is set.
	KindLost Kind = "lost"
)

// Kinds are all of them.
var Kinds = []Kind{KindStart, KindEnd, KindCall, KindRead, KindPrompt, KindAnswer, KindPhase, KindChange, KindApproval, KindLost}

// Record is one line. What does not belong to its kind is left out.
type Record struct {
	Version int       `json:"v"`
	Time    time.Time `json:"time"`
	Kind    Kind      `json:"kind"`
	// Run is the same for all records of one manager, and of no other.
	Run string `json:"run"`
	// Who is on whose behalf it was done: what the program said with supervisor.WithCaller, the caller of a message, the
	// person who typed a command. Empty if no caller was named.
	Who string `json:"who,omitempty"`
	// Via is the way it came: "program", "message", "socket", "command" or "file" (a
	// configuration file changed). From is the actor that sent the message; of one on
	// another machine it is the address that it gave.
	Via  string `json:"via,omitempty"`
	From string `json:"from,omitempty"`
	// PeerPID and PeerProgram are the process that asked on the control socket, and its program with the one that started it:
	// "mcpvisor, started by bash". They are missing where the system does not tell.
	PeerPID     int    `json:"peerPid,omitempty"`
	PeerProgram string `json:"peerProgram,omitempty"`

	Server string `json:"server,omitempty"`
	// Tool is the tool's own name. Of a call of something that is not offered it is the name that was called.
	Tool string `json:"tool,omitempty"`
	// URI names the resource that was read, without its query, user information and what looks like a credential, unless the arguments are
	// recorded in full. Prompt is the prompt's own name.
	URI    string `json:"uri,omitempty"`
	Prompt string `json:"prompt,omitempty"`
	// Epoch is the connection: of a call or a read, the last one that it was sent on.
	Epoch uint64 `json:"epoch,omitempty"`

	// ArgsSHA256 and Args are the arguments, see Arguments; of a read, the hash is of {"uri": …}. Args is missing also if it would be too long; Cut says so.
	ArgsSHA256 string          `json:"argsSha256,omitempty"`
	Args       json.RawMessage `json:"args,omitempty"`
	Cut        bool            `json:"argsCut,omitempty"`
	// Outcome is how the call ended, Millis how long it took, waits and questions included, Attempts how often it was sent.
	Outcome  messages.Outcome `json:"outcome,omitempty"`
	Millis   float64          `json:"ms,omitempty"`
	Attempts int              `json:"attempts,omitempty"`
	// Sent and Received are the bytes of the arguments and of the result.
	Sent     int `json:"sent,omitempty"`
	Received int `json:"received,omitempty"`
	// Decision is what the rules said (allow, ask, deny) if there are any, Rule the rule that decided, if one did, Source where
	// it stands. Answer is what was answered if they asked: no, once, session, always, or "granted" by an earlier answer.
	Decision string `json:"decision,omitempty"`
	Rule     string `json:"rule,omitempty"`
	Source   string `json:"ruleSource,omitempty"`
	Answer   string `json:"answer,omitempty"`
	// Class and Error say why a call or a change did not succeed.
	Class messages.Class `json:"class,omitempty"`
	Error string         `json:"error,omitempty"`

	Phase  messages.Phase `json:"phase,omitempty"`
	Was    messages.Phase `json:"was,omitempty"`
	Reason string         `json:"reason,omitempty"`

	// Change is a word: add, replace, remove, enable, disable, reconnect, set-servers, configure, permissions, sign-in, sign-out,
	// credentials, approve, pin, tool (it differs from what was approved). Detail says more of it, without secrets; Added, Removed
	// and Adjusted are servers.
	Change   string   `json:"change,omitempty"`
	Detail   string   `json:"detail,omitempty"`
	Added    []string `json:"added,omitempty"`
	Removed  []string `json:"removed,omitempty"`
	Adjusted []string `json:"adjusted,omitempty"`

	PID     int    `json:"pid,omitempty"`
	Program string `json:"program,omitempty"`
	Project string `json:"project,omitempty"`

	Lost *Lost `json:"lost,omitempty"`
	// Seq rises by one for each record of a run, those included that are lost.
	Seq uint64 `json:"seq,omitempty"`

	// Line is the line as it was read, without its end: a newer version may have fields that this one does not know. It is
	// nothing that is written.
	Line json.RawMessage `json:"-"`
}

// Lost are records that are not written.
type Lost struct {
	Records uint64 `json:"records"`
	// From and To are the numbers of the first and the last one: all in between are lost too.
	From uint64 `json:"from"`
	To   uint64 `json:"to"`
	// Since and Until are when they happened.
	Since time.Time       `json:"since"`
	Until time.Time       `json:"until"`
	Kinds map[Kind]uint64 `json:"kinds"`
	// Why is the writer's last error, if there was one.
	Why string `json:"why,omitempty"`
}

// decodeRecord reads a line. It fails for what is no record.
func decodeRecord(line []byte) (r Record, ok bool) {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '{' {
		return r, false
	}
	if json.Unmarshal(line, &r) != nil || r.Version < 1 || r.Kind == "" {
		return Record{}, false
	}
	r.Line = line
	return r, true
}
