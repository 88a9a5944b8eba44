package tasks

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/messages/rawjson"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/jsonrpc"
)

func TestTasksAreReadInBothForms(t *testing.T) {
	for raw, want := range map[string]messages.TaskStatus{
		`{"taskId":"a","status":"working","ttl":60000,"pollInterval":1500,"createdAt":"2025-11-25T10:30:00.5+01:00"}`: {
			ID: "a", State: messages.TaskWorking, TTL: messages.Duration(time.Minute),
			Poll: messages.Duration(1500 * time.Millisecond), Created: time.Date(2025, 11, 25, 9, 30, 0, 5e8, time.UTC),
		},
		`{"taskId":"\u0061","status":"cancelled","ttlMs":null,"pollIntervalMs":-1,"createdAt":7}`: {
			ID: "a", State: messages.TaskCancelled,
		},
		`{"taskId":"a","status":"failed","ttlMs":1e300,"pollIntervalMs":"soon","statusMessage":"no"}`: {
			ID: "a", State: messages.TaskFailed, Message: "no",
		},
	} {
		got, problem := ReadStatus([]byte(raw))
		if problem != "" || got.ID != want.ID || got.State != want.State || got.TTL != want.TTL || got.Poll != want.Poll ||
			got.Message != want.Message || !got.Created.Equal(want.Created) || string(got.Raw) != raw {
			t.Errorf("%s: %+v, %s", raw, got, problem)
		}
	}
}

func FuzzTask(f *testing.F) {
	f.Add(`{"taskId":"a","status":"working","ttl":60000}`, `{"_meta":{"a":1},"b":[2]}`)
	f.Add(`{"taskId":"\ud800","status":"completed","pollInterval":1e18}`, `{"_meta":null}`)
	f.Add(`{"taskId":"","status":7}`, ` {} `)
	f.Fuzz(func(t *testing.T, task, result string) {
		if !json.Valid([]byte(task)) || !json.Valid([]byte(result)) {
			return // a session scans what it hands on
		}
		got, problem := ReadStatus([]byte(task[rawjson.SkipSpace([]byte(task), 0):]))
		if problem == "" && (got.ID == "" || !got.State.Known() || got.TTL < 0 || got.Poll < 0) {
			t.Errorf("%q is %+v", task, got)
		}
		params := append([]byte(`{"_meta":{"`+relatedTask+`":{"taskId":`), jsonrpc.AppendString(nil, "t\"1")...)
		params = append(params, `}}}`...)
		tied := WithRelatedTask([]byte(result), params)
		if !json.Valid(tied) {
			t.Fatalf("%q became %q", result, tied)
		}
		if start := rawjson.SkipSpace([]byte(result), 0); result[start] == '{' {
			id, _ := rawjson.Text(rawjson.Member(rawjson.Member(rawjson.Member(tied, "_meta"), relatedTask), "taskId"))
			if id != `t"1` {
				t.Errorf("%q is not tied to the task: %q", result, tied)
			}
		}
		if same := WithRelatedTask([]byte(result), []byte(`{}`)); string(same) != result {
			t.Errorf("%q was changed: %q", result, same)
		}
	})
}

func TestTasksThatAreNone(t *testing.T) {
	for _, raw := range []string{
		`{"status":"working"}`, `{"taskId":"","status":"working"}`, `{"taskId":7,"status":"working"}`, `{"taskId":null,"status":"working"}`,
		`{"taskId":"` + strings.Repeat("x", MaxID+1) + `","status":"working"}`, `{"taskId":"a"}`, `{"taskId":"a","status":"dancing"}`,
	} {
		if _, problem := ReadStatus([]byte(raw)); problem == "" {
			t.Errorf("%.60s is a task", raw)
		}
	}
	if _, problem := ReadStatus([]byte(`{"taskId":"` + strings.Repeat("x", MaxID) + `","status":"working"}`)); problem != "" {
		t.Errorf("the longest id: %s", problem)
	}
}
