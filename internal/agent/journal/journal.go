package journal

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// CommitDelay is how long writes are gathered before they are committed. A commit takes as much CPU as several reports. A kill within that
// time costs repeated work only.
const CommitDelay = 100 * time.Millisecond

// The delays before a failed commit is tried again: doubled each time, up to the larger.
const (
	retryMin = 500 * time.Millisecond
	retryMax = 30 * time.Second
)

// errClosed is the error of Sync if the journal was closed before everything was on disk.
var errClosed = errors.New("journal is closed")

// id is a key of a table.
type id struct{ table, key string }

// Journal is an open directory with a state file. The zero value and nil are journals without one: they keep nothing.
type Journal struct {
	log  logr.Logger
	disk *disk // used by run only

	mu    sync.Mutex
	state state
	news  chan struct{} // closed and replaced when state.synced or state.err changes

	timer  *time.Timer // fires when a commit is due
	stop   chan struct{}
	done   chan struct{}
	closed sync.Once
}

// state is the part of a journal that its mutex protects.
type state struct {
	loaded    tables                    // records of the file, until Load returns them
	sizes     map[string]map[uint64]int // by table and hash of the key, after the next commit
	bytes     int64                     // sum of sizes
	dirty     map[id][]byte             // changes to commit; nil deletes
	scheduled bool                      // the timer runs

	changes uint64 // counts changes
	synced  uint64 // changes that are on disk
	err     error  // of the disk, or of the last commit
}

// Open takes a directory, which it creates if need be, and reads the state file. It fails if another process uses the
// directory ([ErrInUse]) or if the directory is unusable; the error says what to do. A damaged file is quarantined, which
// is logged. A disk that is full or fails is no error: see [Journal.Err].
//
// Without a directory Open returns nil, which is a journal that keeps nothing.
func Open(dir string, log logr.Logger) (*Journal, error) {
	if dir == "" {
		return nil, nil
	}
	d := newDisk(dir, log)
	loaded, err := d.start()
	if err != nil && !failing(err) {
		return nil, errors.Join(err, d.close())
	}
	j := &Journal{
		log: log, disk: d,
		state: state{loaded: loaded, sizes: map[string]map[uint64]int{}, dirty: map[id][]byte{}},
		news:  make(chan struct{}), timer: time.NewTimer(CommitDelay), stop: make(chan struct{}), done: make(chan struct{}),
	}
	if err == nil {
		j.timer.Stop()
	} else {
		j.state.scheduled = true
		j.fail(err)
	}
	for table, records := range loaded {
		for key, value := range records {
			j.state.resize(id{table, key}, value)
		}
	}
	go j.run()
	return j, nil
}

// disabled reports whether the journal has no directory.
func (j *Journal) disabled() bool { return j == nil || j.disk == nil }

// Load returns the records of a table as the last process left them. A second call returns nothing.
func (j *Journal) Load(table string) map[string][]byte {
	if j.disabled() {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	records := j.state.loaded[table]
	delete(j.state.loaded, table)
	return records
}

// Put writes a record with the next commit. The journal keeps value: the caller must not change it.
func (j *Journal) Put(table, key string, value []byte) {
	if value == nil {
		value = []byte{}
	}
	j.change(id{table, key}, value)
}

// Delete removes a record with the next commit.
func (j *Journal) Delete(table, key string) { j.change(id{table, key}, nil) }

func (j *Journal) change(at id, value []byte) {
	if j.disabled() {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, exists := j.state.sizes[at.table][hashOf(at.key)]; value == nil && !exists {
		return
	}
	j.state.dirty[at] = value
	j.state.resize(at, value)
	j.state.changes++
	if !j.state.scheduled {
		j.schedule(CommitDelay)
	}
}

// schedule makes run commit after a delay; with mu held.
func (j *Journal) schedule(delay time.Duration) {
	j.state.scheduled = true
	j.timer.Reset(delay)
}

var hashSeed = maphash.MakeSeed()

// hashOf returns the hash of a key. The keys of all records would take four times the memory of the hashes. If two keys of a table had
// one hash, a deletion of the second would be left out, and its record would come back at the next start. With a million records, the
// probability is one in 37 million.
func hashOf(key string) uint64 { return maphash.String(hashSeed, key) }

// hash returns the hash of table and key. If those of two records were equal, a compaction would lose one of them. The probability is that
// of hashOf.
func (r record) hash() uint64 {
	var h maphash.Hash
	h.SetSeed(hashSeed)
	for _, part := range [][]byte{r.table, {0}, r.key} {
		_, _ = h.Write(part)
	}
	return h.Sum64()
}

// resize accounts for a record's new value.
func (s *state) resize(at id, value []byte) {
	sizes, key := s.sizes[at.table], hashOf(at.key)
	s.bytes -= int64(sizes[key])
	if value == nil {
		if delete(sizes, key); len(sizes) == 0 {
			delete(s.sizes, at.table) // an empty map keeps the memory of its largest size
		}
		return
	}
	if sizes == nil {
		sizes = map[uint64]int{}
		s.sizes[at.table] = sizes
	}
	size := sizeOf(at.key, value)
	sizes[key] = size
	s.bytes += int64(size)
}

// overhead is about how many bytes of the file a record takes besides its key and value.
const overhead = 32

// sizeOf returns about how many bytes of the file a record takes.
func sizeOf(key string, value []byte) int { return len(key) + len(value) + overhead }

// Bytes returns about how many bytes the records take on disk, those to be committed included.
func (j *Journal) Bytes() int64 {
	if j.disabled() {
		return 0
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.state.bytes
}

// Err is nil unless the disk cannot be used or the last commit failed. All changes since then are in memory only, until
// the disk works again.
func (j *Journal) Err() error {
	if j.disabled() {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.state.err
}

// Durable reports whether the journal has a directory, so that its records survive the end of the process. An error means
// that records are in memory only: see [Journal.Err].
func (j *Journal) Durable() (bool, error) { return !j.disabled(), j.Err() }

// Sync waits until all earlier changes are on disk. It returns an error if a commit of them fails.
func (j *Journal) Sync(ctx context.Context) error {
	if j.disabled() {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for want := j.state.changes; j.state.synced < want; {
		if j.state.err != nil {
			return j.state.err
		}
		news := j.news
		j.mu.Unlock()
		var err error
		select {
		case <-news:
		case <-j.done:
			err = errClosed
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		j.mu.Lock()
		if err != nil && j.state.synced < want {
			return err
		}
	}
	return nil
}

// Close commits the last changes and gives the directory back. The error is that of the commit. Further calls do nothing.
func (j *Journal) Close() error {
	if j.disabled() {
		return nil
	}
	j.closed.Do(func() { close(j.stop) })
	<-j.done
	return j.Err()
}

// run commits until the journal is closed.
func (j *Journal) run() {
	defer close(j.done)
	defer j.timer.Stop()
	for retry := time.Duration(0); ; {
		select {
		case <-j.stop:
			j.commit()
			if err := j.disk.close(); err != nil {
				j.log.Error(err, "Closing the state file failed")
			}
			return
		case <-j.timer.C:
		}
		if j.commit() {
			retry = 0
			continue
		}
		retry = min(max(2*retry, retryMin), retryMax)
		j.mu.Lock()
		j.schedule(retry)
		j.mu.Unlock()
	}
}

// commit writes the changes, and reports whether they are on disk. After an error it tries the disk even without changes.
func (j *Journal) commit() bool {
	j.mu.Lock()
	batch, upTo, live, failed := j.state.dirty, j.state.changes, j.state.bytes, j.state.err != nil
	j.state.dirty, j.state.scheduled = map[id][]byte{}, false
	j.mu.Unlock()
	var err error
	if len(batch) > 0 || failed {
		err = j.disk.write(batch, live)
	}

	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		maps.Copy(batch, j.state.dirty) // these changes are newer
		j.state.dirty = batch
		j.fail(err)
	} else {
		j.state.synced = upTo
		if failed {
			j.log.Info("The state file is written again")
		}
		j.state.err = nil
	}
	close(j.news)
	j.news = make(chan struct{})
	return err == nil
}

// fail records why the disk cannot be used; with mu held.
func (j *Journal) fail(err error) {
	err = fmt.Errorf("write the state file: %w", err)
	if j.state.err == nil || j.state.err.Error() != err.Error() {
		j.log.Error(err, "The state is kept in memory only; writing it is tried again")
	}
	j.state.err = err
}
