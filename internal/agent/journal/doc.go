// Package journal keeps small records on disk, for an agent that is started again: tables of keys and values in a
// bbolt file.
//
//	j, err := journal.Open(dir, log)  // takes the directory; a damaged file is put aside
//	defer j.Close()                   // commits what is left
//	for key, value := range j.Load("events") { … }
//	j.Put("events", uid, record)      // does not wait for the disk
//	err = j.Sync(ctx)                 // does
//
// Writes are gathered for [CommitDelay] and committed together, the newest value of each key. A disk that is full or
// fails, from the start or later, delays them: they stay in memory, [Journal.Err] says why, and they are tried again
// until it works. The memory that this takes is bounded by the number of keys.
//
// What is on disk is the state after some commit, never part of one; but a commit of more than a thousand changes is
// written in parts, and a kill between them leaves some of what it removes. Every record has a checksum, the file has one
// of all records, and its structure is checked before bbolt gets it. A file that is torn, corrupt or of another format
// is renamed, and an empty one takes its place: the state is a memory of what can be found out again, so a lost one
// costs work and a wrong one costs trust. So is a file that cannot be read when the agent starts, as soon as the disk
// works: what was done since then is not based on it. If the file is damaged while the agent runs, the new one has what
// was changed from then on.
//
// The file takes two to three times [Journal.Bytes], and does not shrink. Of the files that were put aside, the newest
// is kept, and up to two more as long as they have no more than 16 MiB together: the directory needs space for
// two files of the largest size.
//
// A Journal is safe for concurrent use. It starts one goroutine, which Close ends.
package journal
