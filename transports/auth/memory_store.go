package auth

import (
	"context"
	"slices"
	"sync"
)

// Memory is a Store that lives as long as the process, for tests and for programs that want nothing written. mu guards secrets.
type Memory struct {
	mu      sync.Mutex
	secrets map[string][]byte
}

var _ Store = (*Memory)(nil)

// NewMemory makes an empty store.
func NewMemory() *Memory { return &Memory{secrets: map[string][]byte{}} }

// Get implements Store.
func (m *Memory) Get(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	secret, ok := m.secrets[key]
	if !ok {
		return nil, ErrNotFound
	}
	return slices.Clone(secret), nil
}

// Put implements Store.
func (m *Memory) Put(_ context.Context, key string, secret []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	// Both directions copy: the caller owns its slice, and may clear it.
	m.secrets[key] = slices.Clone(secret)
	return nil
}

// Delete implements Store.
func (m *Memory) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.secrets, key)
	return nil
}

// Where implements Store.
func (m *Memory) Where() string { return "memory" }
