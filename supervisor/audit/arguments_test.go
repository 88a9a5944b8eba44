package audit_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/mcpvisor/mcpvisor/supervisor/audit"
)

func hideHunter(s string) string { return strings.ReplaceAll(s, "hunter2", "[redacted]") }

func TestArguments(t *testing.T) {
	long := `{"text":"` + strings.Repeat("é", 200) + `"}`
	for _, c := range []struct {
		mode       audit.Arguments
		args, want string
		cut        bool
	}{
		{audit.Redacted, `{"b":1,"a":"x"}`, `{"a":"x","b":1}`, false},
		{audit.Redacted, `{"apiKey":"abc","n":{"Password":["x","y"],"user":"ann"}}`,
			`{"apiKey":"[redacted]","n":{"Password":["[redacted]","[redacted]"],"user":"ann"}}`, false},
		{audit.Redacted, `{"auth":{"user":"ann","pin":1234,"ok":true}}`, `{"auth":{"ok":true,"pin":"[redacted]","user":"[redacted]"}}`, false},
		{audit.Redacted, `{"q":"a hunter2 b","u":"use ghp_0123456789abcdef"}`, `{"q":"a [redacted] b","u":"use [redacted]"}`, false},
		{audit.Redacted, `{"q":"\u0068unter2"}`, `{"q":"[redacted]"}`, false},
		{audit.Redacted, long, `{"text":"` + strings.Repeat("é", 100) + `… (400 bytes)"}`, false},
		{audit.Redacted, `{"a":` + strings.Repeat("[", 100) + `1` + strings.Repeat("]", 100) + `}`,
			`{"a":` + strings.Repeat("[", 64) + `"[redacted]"` + strings.Repeat("]", 64) + `}`, false},
		{audit.Redacted, `{"a":[` + strings.Repeat("1,", 60) + `1]}`, `{"a":[` + strings.Repeat("1,", 50) + `"… 11 more"]}`, false},
		{audit.Redacted, `{"q":`, ``, true},
		{audit.Redacted, ``, `{}`, false},
		{audit.Full, `{"apiKey":"abc","q":"hunter2"}`, `{"apiKey":"abc","q":"[redacted]"}`, false},
		{audit.Full, `{"q":"` + strings.Repeat("x", 2<<20) + `"}`, ``, true},
		{audit.Hash, `{"q":1}`, ``, false},
		{audit.None, `{"q":1}`, ``, false},
	} {
		var r audit.Record
		c.mode.AddTo(&r, json.RawMessage(c.args), hideHunter)
		if string(r.Args) != c.want || r.Cut != c.cut || r.Sent != len(c.args) || (r.ArgsSHA256 == "") != (c.mode == audit.None) {
			t.Errorf("%s of %.80s: %s %+v", c.mode, c.args, r.Args, r.Cut)
		}
	}
}

// TestRedactedShowsNoSecret: whatever holds a secret, under whatever name, and however deep.
func TestRedactedShowsNoSecret(t *testing.T) {
	const canary = "cAnaryX7"
	long := "aB3+" + canary + "xYz012345678=="
	for _, args := range []string{
		`{"token":"@"}`, `{"TOKEN":"@"}`, `{"x-Api-KEY":"@"}`, `{"api_key":["@",{"a":"@"}]}`, `{"Authorization":"Bearer @"}`,
		`{"passWord":{"value":{"x":["@"]}}}`, `{"aws_secret_access_key":"@"}`, `{"a":{"b":[{"client_secret":"@"}]}}`, `[[{"Pwd":"@"}]]`,
		`{"cookie":"@"}`, `{"connectionString":"Server=db;User=ann;Password=@;Port=1"}`, `{"dsn":"@"}`,
		`{"text":"Authorization: Bearer @"}`, `{"text":"authorization: basic @"}`, `{"text":"use bearer @ for it"}`, `{"text":"BEARER @"}`,
		`{"text":"password=@ and more"}`, `{"text":"the password: @"}`, `{"text":"{\"api_key\": \"@\", \"a\": 1}"}`, `{"cmd":"run --token @ --x 1"}`,
		`{"cmd":"curl -H 'X-Api-Key: @' h"}`, `{"cmd":["curl","-H","Authorization: Bearer @"]}`, `{"env":"export GH_TOKEN='@'"}`,
		`{"env":[{"name":"GH_TOKEN","value":"@"}]}`, `{"headers":[{"key":"Authorization","value":"@"}]}`, `{"env":[{"Value":"@","Name":"my_secret"}]}`,
		`{"url":"https://ann:@@host.example/x"}`, `{"url":"see https://host.example/x?key=@&b=2"}`, `{"url":"https://host.example/x?sig=@"}`,
		`{"url":"https://host.example/#access_token=@"}`, `{"url":"postgres://ann:@@db/x"}`, `{"text":"at https://host.example/?a=1&b=@, too"}`,
		`{"pem":"-----BEGIN RSA PRIVATE KEY-----\nMII@\nabc\n-----END RSA PRIVATE KEY-----"}`, `{"pem":"-----BEGIN PRIVATE KEY-----\n@"}`,
		`{"text":"ghp_@0123456789"}`, `{"text":"sk-@0123456789"}`, `{"text":"` + long + `"}`, `{"text":"wJalrXUtnFEMI/K7MDENG/bPxR@MPLEK1"}`,
		`{"` + long + `":1,"ghp_@0123456789":2}`, `{"text":"` + strings.Repeat("x ", 90) + `token=@"}`, `{"token":"` + strings.Repeat("@", 900) + `"}`,
		`{"a":"` + strings.Repeat("x", 190) + ` password: ` + strings.Repeat("@", 900) + `"}`,
	} {
		args = strings.ReplaceAll(args, "@", canary)
		args = strings.ReplaceAll(args, canary+canary+"host", canary+"@host") // the sign of user information is meant
		args = strings.ReplaceAll(args, canary+canary+"db", canary+"@db")
		if !json.Valid([]byte(args)) || !strings.Contains(args, canary) {
			t.Fatalf("the case is none: %s", args)
		}
		var r audit.Record
		audit.Redacted.AddTo(&r, json.RawMessage(args), hideHunter)
		if strings.Contains(string(r.Args), canary) || len(r.Args) == 0 {
			t.Errorf("%.300s is shown as %s", args, r.Args)
		}
	}
}

// TestRedactedShowsTheRest: values that are no secret stay readable, or the form would be of no use.
func TestRedactedShowsTheRest(t *testing.T) {
	for _, args := range []string{
		`{"path":"src/MyProject2/internal/server_test.go"}`, `{"query":"how do I sort a list in Go 1.26?"}`,
		`{"url":"https://host.example/a/b"}`, `{"branch":"feature/AUDIT-12-add-keepFor"}`,
		`{"when":"2026-11-21T22:29:47Z","limit":100,"deep":[[{"ok":true}]],"none":null}`, `{"sql":"select a, b from t where c = 1"}`,
	} {
		var r audit.Record
		audit.Redacted.AddTo(&r, json.RawMessage(args), hideHunter)
		var got, want any
		if json.Unmarshal(r.Args, &got) != nil || json.Unmarshal([]byte(args), &want) != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is shown as %s", args, r.Args)
		}
	}
}

// TestHashIsOfTheCanonicalForm: the same arguments have one hash however they are written, and a reader can compute it.
func TestHashIsOfTheCanonicalForm(t *testing.T) {
	hash := func(args string) string {
		var r audit.Record
		audit.Hash.AddTo(&r, json.RawMessage(args), hideHunter)
		return r.ArgsSHA256
	}
	sum := sha256.Sum256([]byte(`{"a":"<é>","b":[1,true,null]}`))
	want := hex.EncodeToString(sum[:])
	for _, args := range []string{`{"b":[1.0,true,null],"a":"<é>"}`, `{"a":"<é>","b":[1,true,null]}`, " {\"a\" : \"\\u003c\\u00e9>\",\n\"b\":[1.0, true,null]} "} {
		if got := hash(args); got != want {
			t.Errorf("%s: %s", args, got)
		}
	}
	if hash("") != hash("{}") || hash(`{"a":1}`) == hash(`{"a":2}`) || hash(`{`) == hash(`{}`) {
		t.Error("hashes are not what they are of")
	}
}

func FuzzArguments(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":"hunter2"}`, `{"token":[{"x":"y"}]}`, `[`, `1e999`, `{"a":1}{"b":2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, args []byte) {
		for _, mode := range []audit.Arguments{audit.Hash, audit.Redacted, audit.Full, audit.None} {
			var r audit.Record
			mode.AddTo(&r, args, hideHunter)
			if strings.Contains(string(r.Args), "hunter2") || len(r.Args) > 0 && !json.Valid(r.Args) || mode == audit.Hash && len(r.Args) > 0 {
				t.Errorf("%s: %s", mode, r.Args)
			}
		}
	})
}
