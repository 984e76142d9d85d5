package informers

import (
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// fieldCodec encodes or decodes the fields that it visits, in a fixed order. Unlike protobuf it encodes no numbers of fields. One type does
// both, because through an interface the objects would escape to the heap.
//
// Encoding sets each field to zero, so the caller must own all memory that the object points to. Decoding needs the pointers and the
// lengths of the lists as they were then. It panics if a field is missing.
type fieldCodec struct {
	encoded []byte // all fields so far
	decodes bool
	left    string // the fields that are still to be decoded
	seconds int64  // of the last time: most times of an object are close to each other
}

func decoderOf(encoded string) *fieldCodec { return &fieldCodec{left: encoded, decodes: true} }

// take returns the next bytes that are to be decoded.
func (c *fieldCodec) take(size uint64) (taken string) {
	taken, c.left = c.left[:size], c.left[size:]
	return taken
}

// varint is encoded as in protobuf.
func (c *fieldCodec) varint(value *uint64) {
	if !c.decodes {
		c.encoded = protowire.AppendVarint(c.encoded, *value)
		*value = 0
		return
	}
	*value = 0
	for shift, more := 0, true; more; shift += 7 {
		digit := c.take(1)[0]
		*value |= uint64(digit&0x7f) << shift
		more = digit&0x80 != 0
	}
}

func (c *fieldCodec) text(value *string) {
	size := uint64(len(*value))
	if c.varint(&size); c.decodes {
		*value = strings.Clone(c.take(size)) // a text that is kept does not keep all fields
		return
	}
	c.encoded = append(c.encoded, *value...)
	*value = ""
}

// hasShortForm encodes whether a text has a short form, or returns whether one is to be decoded. It visits other texts.
func (c *fieldCodec) hasShortForm(value *string, short bool) bool {
	if !c.present(short) {
		c.text(value)
		return false
	}
	*value = ""
	return true
}

// hexText encodes a text as bytes if it consists of pairs of lower-case hexadecimal digits.
func (c *fieldCodec) hexText(value *string) {
	var packed string
	isHex := false
	if !c.decodes {
		decoded, err := hex.DecodeString(*value)
		packed, isHex = string(decoded), err == nil && hex.EncodeToString(decoded) == *value
	}
	if !c.hasShortForm(value, isHex) {
		return
	}
	if c.text(&packed); c.decodes {
		*value = hex.EncodeToString([]byte(packed))
	}
}

// uid encodes a UUID, as the API server makes them, as 16 bytes.
func (c *fieldCodec) uid(value *types.UID) {
	var id uuid.UUID
	isUUID := false
	if !c.decodes {
		parsed, err := uuid.Parse(string(*value))
		id, isUUID = parsed, err == nil && parsed.String() == string(*value)
	}
	if !c.hasShortForm((*string)(value), isUUID) {
		return
	}
	if c.decodes {
		copy(id[:], c.take(uint64(len(id))))
		*value = types.UID(id.String())
	} else {
		c.encoded = append(c.encoded, id[:]...)
	}
}

// decimal encodes a text as a number if it is one, such as a resource version.
func (c *fieldCodec) decimal(value *string) {
	var number uint64
	isNumber := false
	if !c.decodes {
		parsed, err := strconv.ParseUint(*value, 10, 64)
		number, isNumber = parsed, err == nil && strconv.FormatUint(parsed, 10) == *value
	}
	if !c.hasShortForm(value, isNumber) {
		return
	}
	if c.varint(&number); c.decodes {
		*value = strconv.FormatUint(number, 10)
	}
}

func (c *fieldCodec) number(value *int32) {
	number := protowire.EncodeZigZag(int64(*value))
	c.varint(&number)
	*value = int32(protowire.DecodeZigZag(number)) //nolint:gosec // was an int32
}

// present encodes whether a part of the object exists, or returns whether one is to be decoded.
func (c *fieldCodec) present(exists bool) bool {
	number := protowire.EncodeBool(exists)
	if c.varint(&number); c.decodes {
		return protowire.DecodeBool(number)
	}
	return exists
}

// time encodes the seconds since the last time: the API has no fractions of them. 0 is the zero time. A time exactly 2^63 seconds from the
// last one becomes zero.
func (c *fieldCodec) time(value *metav1.Time) {
	var number uint64
	if !c.decodes && !value.IsZero() {
		if number = 1 + protowire.EncodeZigZag(value.Unix()-c.seconds); number > 0 {
			c.seconds = value.Unix()
		}
	}
	*value = metav1.Time{}
	if c.varint(&number); number > 0 {
		c.seconds += protowire.DecodeZigZag(number - 1)
		*value = metav1.Unix(c.seconds, 0)
	}
}

func (c *fieldCodec) microTime(value *metav1.MicroTime) {
	seconds, micros := metav1.NewTime(value.Time), int32(value.Nanosecond()/1000) //nolint:gosec // less than a million
	c.time(&seconds)
	c.number(&micros)
	*value = metav1.NewMicroTime(seconds.Add(time.Duration(micros) * time.Microsecond))
}
