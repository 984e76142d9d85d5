package journal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// The state file is a header and frames. Integers have a fixed size and are big-endian, unless they are varints.
//
//	header  magic, format u32, synced u64, CRC of these u32
//	frame   payload size u32, CRC of offset and size u32, CRC of offset, size and payload u32, payload
//	payload records
//	record  size of the table's name uvarint, name, size of the key uvarint, key,
//	        size of the value plus one uvarint, value; a zero instead of size and value deletes the key
//
// The CRCs are CRC-32C. They include the offset of the frame, so that a frame at another place is not valid.
//
// synced says up to where the file was on disk before the last commit. A frame below it that is not valid is damaged; one
// above it was torn when the process or the machine stopped in the middle of the commit.
const (
	magic      = "tpstate\n"
	formatLog  = 3 // formats 1 and 2 are bbolt files, see bbolt.go
	headerSize = len(magic) + 4 + 8 + 4
	frameHead  = 4 + 4 + 4
)

// errDamaged means that a file exists and its content is unusable.
var errDamaged = errors.New("damaged")

func damaged(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errDamaged}, args...)...)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func encodeHeader(synced int64) []byte {
	raw := binary.BigEndian.AppendUint32([]byte(magic), formatLog)
	raw = binary.BigEndian.AppendUint64(raw, uint64(synced)) //nolint:gosec // not negative
	return binary.BigEndian.AppendUint32(raw, crc32.Checksum(raw, castagnoli))
}

// decodeHeader returns the header's synced field.
func decodeHeader(raw []byte) (synced int64, err error) {
	if string(raw[:len(magic)]) != magic {
		return 0, damaged("it is not a state file")
	}
	fields := raw[len(magic):]
	if crc32.Checksum(raw[:headerSize-4], castagnoli) != binary.BigEndian.Uint32(fields[12:]) {
		return 0, damaged("the header has a wrong checksum")
	}
	if format := binary.BigEndian.Uint32(fields); format != formatLog {
		return 0, damaged("this agent does not know format %d", format)
	}
	return int64(binary.BigEndian.Uint64(fields[4:])), nil //nolint:gosec // the checksum is right
}

// frameCRCs returns the checksums of a frame: of its offset and size, and of these and the payload.
func frameCRCs(offset int64, payload []byte, size uint32) (head, all uint32) {
	place := binary.BigEndian.AppendUint64(make([]byte, 0, 12), uint64(offset)) //nolint:gosec // not negative
	head = crc32.Checksum(binary.BigEndian.AppendUint32(place, size), castagnoli)
	return head, crc32.Update(head, castagnoli, payload)
}

// sealFrame fills in the head of a frame that has its payload.
func sealFrame(frame []byte, offset int64) {
	size := uint32(len(frame) - frameHead) //nolint:gosec // a frame is a few MiB at most
	head, all := frameCRCs(offset, frame[frameHead:], size)
	binary.BigEndian.PutUint32(frame, size)
	binary.BigEndian.PutUint32(frame[4:], head)
	binary.BigEndian.PutUint32(frame[8:], all)
}

// record is a record in a frame. Its fields are valid until the next frame is read.
type record struct {
	table, key, value []byte // a nil value deletes the key
	offset            int64  // in the file
}

// appendRecord encodes a record.
func appendRecord[T string | []byte](to []byte, table, key T, value []byte) []byte {
	to = append(binary.AppendUvarint(to, uint64(len(table))), table...)
	to = append(binary.AppendUvarint(to, uint64(len(key))), key...)
	if value == nil {
		return append(to, 0)
	}
	return append(binary.AppendUvarint(to, uint64(len(value))+1), value...)
}

// decodeRecord decodes the first record of a payload at an offset, and returns the payload after it.
func decodeRecord(payload []byte, offset int64) (r record, rest []byte, err error) {
	r.offset, rest = offset, payload
	for _, part := range []*[]byte{&r.table, &r.key, &r.value} {
		size, n := binary.Uvarint(rest)
		if n <= 0 {
			return record{}, nil, damaged("a record at %d has a field without size", offset)
		}
		rest = rest[n:]
		if part == &r.value {
			if size == 0 {
				break
			}
			size--
		}
		if size > uint64(len(rest)) {
			return record{}, nil, damaged("a record at %d exceeds its frame", offset)
		}
		*part, rest = rest[:size:size], rest[size:]
	}
	return r, rest, nil
}

// errTorn means that a frame is not valid.
var errTorn = errors.New("torn frame")

// replay calls each for all records of a file in the order in which they were written, up to the first frame that is not
// valid, or until each fails. It returns the offset of that frame, which is the end of the file if all are valid.
func replay(file io.ReaderAt, size int64, each func(record) error) (end int64, err error) {
	end = int64(headerSize)
	in := bufio.NewReaderSize(io.NewSectionReader(file, end, size-end), 1<<16)
	var payload []byte
	for {
		payload, err = readFrame(in, end, size, payload)
		if errors.Is(err, errTorn) {
			return end, nil
		}
		if err != nil {
			return end, err
		}
		next := end + int64(frameHead+len(payload))
		for rest := payload; len(rest) > 0; {
			var r record
			if r, rest, err = decodeRecord(rest, next-int64(len(rest))); err != nil {
				return end, err
			}
			if err := each(r); err != nil {
				return end, err
			}
		}
		end = next
	}
}

// readFrame returns the payload of the frame at an offset, in buffer if it is large enough.
func readFrame(in io.Reader, offset, fileSize int64, buffer []byte) (payload []byte, err error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return nil, tornAtEOF(err)
	}
	size := binary.BigEndian.Uint32(head[:])
	// The size has a checksum of its own, so that a wrong one cannot make the agent allocate gigabytes.
	headCRC, _ := frameCRCs(offset, nil, size)
	if headCRC != binary.BigEndian.Uint32(head[4:]) || int64(size) > fileSize-offset-int64(frameHead) {
		return nil, errTorn
	}
	if int(size) > cap(buffer) {
		buffer = make([]byte, size)
	}
	payload = buffer[:size]
	if _, err := io.ReadFull(in, payload); err != nil {
		return nil, tornAtEOF(err)
	}
	if _, all := frameCRCs(offset, payload, size); all != binary.BigEndian.Uint32(head[8:]) {
		return nil, errTorn
	}
	return payload, nil
}

func tornAtEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errTorn
	}
	return err
}
