package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// CommitDelay is how long writes are gathered before they are committed.
const CommitDelay = 20 * time.Millisecond

// How long to wait before a commit that failed is tried again: doubled each time, up to the larger.
const (
	retryMin = 500 * time.Millisecond
	retryMax = 30 * time.Second
)

// errClosed is what Sync returns if the journal was closed before everything was on disk.
var errClosed = errors.New("journal is closed")

// id is a key of a table.
type id struct{ table, key string }

// Journal is an open file. The zero value and nil are journals without one: they keep nothing.
type Journal struct {
	log  logr.Logger
	disk *disk // of run

	mu      sync.Mutex
	loaded  tables        // what the file had, until it is taken
	sizes   map[id]int    // of what the file will have
	bytes   int64         // their sum
	dirty   map[id][]byte // to be written; nil to be removed
	written uint64        // counts changes
	synced  uint64        // those of them that are on disk
	news    chan struct{} // closed and replaced when synced or err changes
	err     error         // why the disk could not be taken, or the last commit failed

	wake   chan struct{} // capacity 1: there is something to write
	stop   chan struct{}
	done   chan struct{}
	closed sync.Once
}

// Open takes a directory, which it creates if need be, and reads the file in it. It fails if another process has the
// directory ([ErrInUse]) or if it cannot be used at all; the error says what to do. A file that is damaged is put
// aside, which is logged. A disk that is full or fails is no error: see [Journal.Err].
//
// Without a directory, there is no journal: it returns nil, which keeps nothing.
func Open(dir string, log logr.Logger) (*Journal, error) {
	if dir == "" {
		return nil, nil
	}
	d := &disk{dir: dir, log: log}
	loaded, err := d.start()
	if err != nil && !failing(err) {
		return nil, errors.Join(err, d.close())
	}
	j := &Journal{
		log: log, disk: d, loaded: loaded,
		sizes: map[id]int{}, dirty: map[id][]byte{}, news: make(chan struct{}),
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	if err != nil {
		j.fail(err)
		j.wake <- struct{}{}
	}
	for table, records := range loaded {
		for key, value := range records {
			j.resize(id{table, key}, value)
		}
	}
	go j.run()
	return j, nil
}

// none reports whether there is nothing behind the journal.
func (j *Journal) none() bool { return j == nil || j.disk == nil }

// Load returns what the file had of a table when it was opened, once.
func (j *Journal) Load(table string) map[string][]byte {
	if j.none() {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	records := j.loaded[table]
	delete(j.loaded, table)
	return records
}

// Put writes a record, soon. The journal keeps value: it must not be changed.
func (j *Journal) Put(table, key string, value []byte) {
	if value == nil {
		value = []byte{}
	}
	j.change(id{table, key}, value)
}

// Delete removes a record, soon.
func (j *Journal) Delete(table, key string) { j.change(id{table, key}, nil) }

func (j *Journal) change(at id, value []byte) {
	if j.none() {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, there := j.sizes[at]; value == nil && !there && j.dirty[at] == nil {
		return
	}
	j.dirty[at] = value
	j.resize(at, value)
	j.written++
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

// resize accounts for a record's new value; with mu held.
func (j *Journal) resize(at id, value []byte) {
	j.bytes -= int64(j.sizes[at])
	if value == nil {
		delete(j.sizes, at)
		return
	}
	j.sizes[at] = len(at.key) + len(value) + overhead
	j.bytes += int64(j.sizes[at])
}

// overhead is about what the file needs for a record besides its key and value.
const overhead = 32

// Bytes is about what the records take on disk, those to be written included.
func (j *Journal) Bytes() int64 {
	if j.none() {
		return 0
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.bytes
}

// Err is nil unless the disk could not be taken, or the last commit failed: then what was changed since is in memory
// only, until the disk works again.
func (j *Journal) Err() error {
	if j.none() {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// Sync waits until all that was changed before is on disk, and returns an error if a commit of it fails.
func (j *Journal) Sync(ctx context.Context) error {
	if j.none() {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for want := j.written; j.synced < want; {
		if j.err != nil {
			return j.err
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
		if err != nil && j.synced < want {
			return err
		}
	}
	return nil
}

// Close commits what is left and gives the directory back. The error is that of the commit. Further calls do nothing.
func (j *Journal) Close() error {
	if j.none() {
		return nil
	}
	j.closed.Do(func() { close(j.stop) })
	<-j.done
	return j.Err()
}

// run commits until the journal is closed.
func (j *Journal) run() {
	defer close(j.done)
	defer func() {
		j.commit()
		if err := j.disk.close(); err != nil {
			j.log.Error(err, "Closing the state file failed")
		}
	}()
	for retry := time.Duration(0); ; {
		select {
		case <-j.stop:
			return
		case <-j.wake:
		}
		if !j.pause(max(CommitDelay, retry)) {
			return
		}
		if j.commit() {
			retry = 0
			continue
		}
		retry = min(max(2*retry, retryMin), retryMax)
		select {
		case j.wake <- struct{}{}:
		default:
		}
	}
}

// pause waits, and reports whether that was not cut short by the end.
func (j *Journal) pause(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-j.stop:
		return false
	}
}

// commit writes what is dirty, and reports whether it is on disk. After an error it also tries whether the disk works.
func (j *Journal) commit() bool {
	j.mu.Lock()
	batch, upTo, failed := j.dirty, j.written, j.err != nil
	j.dirty = map[id][]byte{}
	j.mu.Unlock()
	var err error
	if len(batch) > 0 || failed {
		err = j.disk.write(batch)
	}

	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		maps.Copy(batch, j.dirty) // what was changed meanwhile is newer
		j.dirty = batch
		j.fail(err)
	} else {
		j.synced = upTo
		if failed {
			j.log.Info("The state file is written again")
		}
		j.err = nil
	}
	close(j.news)
	j.news = make(chan struct{})
	return err == nil
}

// fail notes why the disk does not work; with mu held.
func (j *Journal) fail(err error) {
	err = fmt.Errorf("write the state file: %w", err)
	if j.err == nil || j.err.Error() != err.Error() {
		j.log.Error(err, "The state is kept in memory only, and writing it is tried again")
	}
	j.err = err
}
