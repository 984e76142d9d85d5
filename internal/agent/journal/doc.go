// Package journal keeps small records on disk for an agent that is started again: tables of keys and values in one file.
//
//	j, err := journal.Open(dir, log)  // locks the directory; a damaged file is quarantined
//	defer j.Close()                   // commits the last changes
//	for key, value := range j.Load("events") { … }
//	j.Put("events", uid, record)      // does not wait for the disk
//	err = j.Sync(ctx)                 // does
//
// # Commits
//
// Changes are gathered for [CommitDelay] and committed together, the newest value of each key. A disk that is full or
// fails, from the start or later, delays them: they stay in memory, [Journal.Err] says why, and the commit is tried again
// until it works. The memory that this takes is bounded by the number of keys.
//
// # The file
//
// The file state.db is a log: a header and a frame for each commit. A frame has the changes, the offset and checksums;
// format.go describes the bytes. The journal reads the log when it is opened, and then holds a hash of each key and
// the size of its newest record, about 25 bytes in memory. When the rest of the log is larger than these records by about 1 MiB, the
// records are copied into a new file, which is renamed over the log. The copy takes about 150 bytes for each record meanwhile.
//
// The file has at most twice [Journal.Bytes] and 1 MiB. A compaction needs space for another file of [Journal.Bytes]; without
// it the log goes on to grow. A damaged file is quarantined, that is renamed to state.db.TIME, and an empty one takes its
// place. The agent can rebuild the records from the cluster and the control plane, so it does not trust damaged ones. The
// newest quarantined file is kept, and up to two more while all have at most 16 MiB together.
//
// # Crashes
//
// After a crash, the file is as after some commit, except in the third case:
//
//   - While changes are gathered, or during a compaction: these changes are lost. They are 100 ms old at most, or as old as
//     the compaction and the commit take.
//   - While a frame is written: the frame is torn. The next process notices and cuts it off.
//   - Between two frames of a commit of more than 1 MiB: the first frames stay. Puts come before deletions, so no deletion is there
//     without all puts.
//   - Before a compaction renames its file: the log is as before. The next process removes the other file.
//
// The header says how much of the file was on disk before the last commit, and in a closed file all of it. No crash tears a
// frame below that size, so an invalid one is damaged and the file is quarantined. A file that ends before that size or has
// another format is quarantined too. The same holds for a file that cannot be read when the agent starts: its records miss
// the changes that the agent makes until the disk works again. If the file is damaged while the agent runs, the new one has
// the changes from then on.
//
// # Concurrency
//
// A Journal is safe for concurrent use. It starts one goroutine, which does all writing and which Close ends. The lock on the
// directory excludes other processes, and ends with the process.
package journal
