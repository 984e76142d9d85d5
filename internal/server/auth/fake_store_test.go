package auth

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// fakeStore is a store in memory. Several replicas may share it.
type fakeStore struct {
	mu       sync.Mutex
	tokens   []store.Token
	hashes   map[string]int64 // token IDs by hash
	previous map[string]int64 // token IDs by the hash before the last renewal
	sessions map[string]session
	audit    []store.AuditRecord
	reads    int // reads of tokens and sessions
	deleted  int // deletions of sessions
	pruned   int // calls of PruneSessions
	uses     []time.Time

	failing error  // the error of every call
	reading func() // called between reading the row of a token and returning it
	writing func() // called before an audit record is written
}

type session struct {
	token   int64
	expires time.Time
}

func newFakeStore() *fakeStore {
	return &fakeStore{hashes: map[string]int64{}, previous: map[string]int64{}, sessions: map[string]session{}}
}

func (m *fakeStore) CreateToken(_ context.Context, token store.Token, hash []byte) (store.Token, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	token.ID = int64(len(m.tokens) + 1)
	m.tokens = append(m.tokens, token)
	m.hashes[string(hash)] = token.ID
	return token, m.failing
}

func (m *fakeStore) byID(id int64) (store.Token, error) {
	if m.failing != nil {
		return store.Token{}, m.failing
	}
	if id < 1 || int(id) > len(m.tokens) {
		return store.Token{}, store.ErrNotFound
	}
	return m.tokens[id-1], nil
}

func (m *fakeStore) TokenByHash(_ context.Context, hash []byte) (store.Token, error) {
	m.mu.Lock()
	m.reads++
	id, current := m.hashes[string(hash)]
	if !current {
		id = m.previous[string(hash)]
	}
	token, err := m.byID(id)
	token.Renewal.ByPrevious = err == nil && !current
	reading := m.reading
	m.mu.Unlock()
	if reading != nil {
		reading()
	}
	return token, err
}

func (m *fakeStore) Tokens(context.Context) ([]store.Token, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.tokens), m.failing
}

func (m *fakeStore) RevokeToken(_ context.Context, id int64) (store.Token, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	token, err := m.byID(id)
	if err != nil {
		return token, err
	}
	if token.RevokedAt == nil {
		token.RevokedAt = new(time.Now())
		m.tokens[id-1] = token
	}
	return token, nil
}

func (m *fakeStore) RecordTokenUse(_ context.Context, id int64, at time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.byID(id); err != nil {
		return err
	}
	m.uses = append(m.uses, at)
	m.tokens[id-1].UsedAt = &at
	return nil
}

func (m *fakeStore) RenewToken(_ context.Context, read store.Token, presented []byte, next store.NewSecret) (store.Token, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	token, err := m.byID(read.ID)
	if err != nil {
		return token, err
	}
	if token.RevokedAt != nil || !token.Renewal.Renewable || !reflect.DeepEqual(token.Renewal.At, read.Renewal.At) {
		return store.Token{}, store.ErrTokenChanged
	}
	if _, current := m.hashes[string(presented)]; current {
		maps.DeleteFunc(m.previous, func(_ string, id int64) bool { return id == token.ID })
		m.previous[string(presented)], token.Renewal.PreviousExpiresAt = token.ID, &next.PreviousExpiresAt
	}
	maps.DeleteFunc(m.hashes, func(_ string, id int64) bool { return id == token.ID })
	m.hashes[string(next.Hash)] = token.ID
	token.ExpiresAt, token.Renewal.At = &next.ExpiresAt, &next.At
	m.tokens[token.ID-1] = token
	return token, nil
}

func (m *fakeStore) CreateSession(_ context.Context, hash []byte, tokenID int64, expires time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sessions[string(hash)] = session{tokenID, expires}
	return m.failing
}

func (m *fakeStore) SessionToken(_ context.Context, hash []byte, now time.Time) (store.Token, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads++
	s, ok := m.sessions[string(hash)]
	if m.failing == nil && (!ok || !now.Before(s.expires)) {
		return store.Token{}, store.ErrNotFound
	}
	return m.byID(s.token)
}

func (m *fakeStore) DeleteSession(_ context.Context, hash []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.deleted++
	delete(m.sessions, string(hash))
	return m.failing
}

// deletions returns the number of deletions of sessions.
func (m *fakeStore) deletions() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.deleted
}

func (m *fakeStore) PruneSessions(_ context.Context, now time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pruned++
	for hash, s := range m.sessions {
		if !now.Before(s.expires) {
			delete(m.sessions, hash)
		}
	}
	return m.failing
}

// prunes returns the number of calls of PruneSessions.
func (m *fakeStore) prunes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pruned
}

func (m *fakeStore) AppendAudit(ctx context.Context, record store.AuditRecord) error {
	m.mu.Lock()
	writing, failing := m.writing, m.failing
	m.mu.Unlock()
	if writing != nil {
		writing()
	}
	if failing != nil {
		return failing
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	record.ID = int64(len(m.audit) + 1)
	m.audit = append(m.audit, record)
	return nil
}

func (m *fakeStore) AuditRecords(_ context.Context, cursor string, size int) (threeport.List[store.AuditRecord], error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if cursor != "" {
		return threeport.List[store.AuditRecord]{}, store.ErrCursor
	}
	newest := slices.Clone(m.audit)
	slices.Reverse(newest)
	return threeport.List[store.AuditRecord]{Items: newest[:min(size, len(newest))], Total: int64(len(newest))}, m.failing
}

// fail sets the error of every call; nil resets it.
func (m *fakeStore) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failing = err
}

// count returns the number of reads of tokens and sessions.
func (m *fakeStore) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.reads
}
