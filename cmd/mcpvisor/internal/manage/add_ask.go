package manage

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/ask"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/edit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/exit"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/schema"
	"github.com/mcpvisor/mcpvisor/cmd/mcpvisor/internal/signin"
	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/supervisor/config"
)

// askSecret asks for a value without echo. It asks again after an empty answer unless the value is optional, and after a
// control character, which no header or variable may contain. An interrupt is the only error.
func (w *entryWriter) askSecret(server, question string, optional bool) (string, error) {
	value := ""
	err := w.options.Prompter.PromptForCommand(w.cmd.Context(), server, func(t *ask.Conversation) error {
		t.Print("\n%s\n", question)
		for {
			v, err := t.ReadAnswer("> ", true)
			switch {
			case err != nil:
				return err
			case v == "" && !optional:
				t.Print("  An answer is required.\n")
			case strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }):
				t.Print("  It holds a control character.\n")
			default:
				value = v
				return nil
			}
		}
	})
	if err != nil {
		return "", exit.With(exit.Interrupted, "interrupted")
	}
	return value, nil
}

// notShown ends the text of a question for a secret.
const notShown = ": not shown while you type; ${NAME} takes it from your environment at each start"

// askUnset asks for the values of variables that env and headers name and that are not set. A typed value replaces the
// reference in the spec; without an answer the reference stays, and must be set when the server starts. It asks nothing for the
// project's file, because others would read the value there.
func (w *entryWriter) askUnset(name string, s messages.Spec) (messages.Spec, error) {
	if !w.canAsk() || w.scope == messages.ScopeProject {
		return s, nil
	}
	ctx := w.setup.Snapshot.Context
	// given holds the answers by variable, so that a variable in two values is asked for once.
	given := map[string]string{}
	for _, values := range []*map[string]string{&s.Env, &s.Headers} {
		*values = maps.Clone(*values)
		for _, key := range slices.Sorted(maps.Keys(*values)) {
			for _, variable := range ctx.Unset((*values)[key]) {
				v, asked := given[variable]
				if !asked {
					var err error
					if v, err = w.askSecret(name, messages.Line(variable, 60)+", which "+messages.Line(key, 60)+" names, is not set. Its "+
						"value, to be written into the file (not shown while you type; nothing: leave it to the environment)", true); err != nil {
						return s, err
					}
					given[variable] = v
				}
				if v != "" {
					// Both spellings of a reference are replaced.
					(*values)[key] = strings.NewReplacer("${"+variable+"}", v, "${env:"+variable+"}", v).Replace((*values)[key])
				}
			}
		}
	}
	return s, nil
}

// askCredentials asks what to do about a server that needs credentials: sign in, type a token, or leave it. retry reports
// whether credentials were saved, so that another attempt is worth it. A failed sign-in is printed and ends as "later".
func (w *entryWriter) askCredentials(ctx context.Context, out addReport, st messages.Status) (retry bool, err error) {
	name := messages.Line(out.Name, 60)
	words := []string{"token", "later"}
	question := name + " wants credentials. Type a [t]oken, or [l]ater?"
	if st.Config == nil || st.Config.AuthKind() == messages.AuthOAuth {
		words = []string{"sign in", "token", "later"}
		question = name + " wants credentials. [s]ign in with the browser, type a [t]oken, or [l]ater?"
	}
	if w.scope == messages.ScopeProject { // a token in this file would be read by others
		words = slices.DeleteFunc(words, func(w string) bool { return w == "token" })
		question = strings.Replace(question, "type a [t]oken, or ", "or ", 1)
		if len(words) == 1 {
			return false, nil
		}
	}
	word := "later"
	err = w.options.Prompter.PromptForCommand(ctx, out.Name, func(t *ask.Conversation) error {
		var err error
		word, err = t.ChooseWord(question, words...)
		return err
	})
	if err != nil {
		return false, exit.With(exit.Interrupted, "interrupted")
	}
	switch word {
	case "sign in":
		if err := signin.SignIn(w.options, w.cmd, out.Name, signin.LoginFlags{Timeout: 5 * time.Minute}); err != nil {
			w.options.ReportError(err)
			return false, nil
		}
		return true, nil
	case "token":
		token, err := w.askSecret(out.Name, "The token of "+name+", sent as Authorization: Bearer"+notShown, false)
		if err != nil {
			return false, err
		}
		return true, w.putToken(out.Name, token)
	}
	return false, nil
}

// putToken writes a token into the entry as its Authorization header, and approves the entry as it is now, since the approval
// covers the whole entry and the person typed this change.
func (w *entryWriter) putToken(name, token string) error {
	var saved config.Entry
	// editFile gives the text as it is now, which another program may have changed since writeEntry wrote it.
	err := editFile(w.file, w.scope, func(text []byte, ours config.Parsed) ([]byte, error) {
		e, ok := ours.Servers[name]
		if !ok || e.Path == nil {
			return nil, exit.With(exit.Failed, "somebody took the server out of "+messages.Line(w.file, 0)+" meanwhile")
		}
		text, err := edit.Put(text, append(slices.Clone(e.Path), "headers", "Authorization"), schema.EncodeJSON("Bearer "+token))
		if err == nil {
			saved, err = w.checkEntry(name, text)
		}
		return text, err
	})
	if err != nil {
		return err
	}
	return w.approveWritten(name, saved)
}
