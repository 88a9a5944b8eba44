package memory_test

import (
	"errors"
	"testing"

	"github.com/mcpvisor/mcpvisor/messages"
	"github.com/mcpvisor/mcpvisor/transports/budget"
	"github.com/mcpvisor/mcpvisor/transports/session/internal/memory"
)

// ReleaseAll gives back what is reserved, whatever was released before, and nothing is counted after it.
func TestAnAccountGivesBackWhatItTook(t *testing.T) {
	share := budget.New(1 << 20).Open("files")
	account := memory.Account{Share: share}
	if err := account.Reserve(1000); err != nil {
		t.Fatal(err)
	}
	if err := account.Reserve(2 << 20); !errors.Is(err, messages.ErrMemory) || share.Held() != 1000 {
		t.Errorf("more than there is: %v, held %d", err, share.Held())
	}
	account.Release(400)
	account.Release(-5)
	if share.Held() != 600 {
		t.Errorf("held %d, want 600", share.Held())
	}
	account.ReleaseAll()
	if err := account.Reserve(2 << 20); err != nil || share.Held() != 0 {
		t.Errorf("after the end: %v, held %d", err, share.Held())
	}
	account.Release(10)
	if share.Held() != 0 {
		t.Errorf("released after the end: held %d", share.Held())
	}
}

// The list that the owner keeps is counted on after the end of the session.
func TestTheListStaysCounted(t *testing.T) {
	share := budget.New(1 << 20).Open("files")
	account := memory.Account{Share: share}
	if err := account.Reserve(1000); err != nil {
		t.Fatal(err)
	}
	account.KeepList(1000, 700)
	account.ReleaseAll()
	if share.Held() != 700 {
		t.Errorf("held %d, want the 700 of the list", share.Held())
	}
}

// An account without a share counts nothing and refuses nothing.
func TestAnAccountWithoutAShareIsUnbounded(t *testing.T) {
	var account memory.Account
	if err := account.Reserve(1 << 60); err != nil {
		t.Error(err)
	}
	account.Release(1)
	account.KeepList(1, 1)
}
