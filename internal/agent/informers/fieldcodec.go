package informers

import (
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fieldCodec encodes or decodes the fields that it visits, in a fixed order. Unlike protobuf it encodes no numbers of fields. One type does
// both, because through an interface the objects would escape to the heap.
//
// Encoding sets each field to zero, so the caller must own all memory that the object points to. Decoding needs the pointers and the
// lengths of the lists as they were then. It only reads the bytes, so several goroutines may decode the same ones. It panics if a
// field is missing.
type fieldCodec struct {
	encoded []byte // all fields so far, or those that are still to be decoded
	decodes bool
}

func decoderOf(encoded []byte) *fieldCodec { return &fieldCodec{encoded, true} }

func (c *fieldCodec) text(value *string) {
	if c.decodes {
		decoded, size := protowire.ConsumeString(c.encoded)
		*value, c.encoded = decoded, c.encoded[size:]
		return
	}
	c.encoded = protowire.AppendString(c.encoded, *value)
	*value = ""
}

func (c *fieldCodec) varint(value *uint64) {
	if c.decodes {
		decoded, size := protowire.ConsumeVarint(c.encoded)
		*value, c.encoded = decoded, c.encoded[size:]
		return
	}
	c.encoded = protowire.AppendVarint(c.encoded, *value)
	*value = 0
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

// time encodes seconds: the API has no fractions of them.
func (c *fieldCodec) time(value *metav1.Time) {
	if number := c.instant(value.Time, value.Unix()); number == 0 {
		*value = metav1.Time{}
	} else {
		*value = metav1.Unix(protowire.DecodeZigZag(number-1), 0)
	}
}

func (c *fieldCodec) microTime(value *metav1.MicroTime) {
	if number := c.instant(value.Time, value.UnixMicro()); number == 0 {
		*value = metav1.MicroTime{}
	} else {
		*value = metav1.NewMicroTime(time.UnixMicro(protowire.DecodeZigZag(number - 1)))
	}
}

// instant returns the number of a time that it decodes, and 0 if it encodes one. The zero time is 0. Other times are one more than
// their units since 1970, in the zigzag encoding of protobuf.
func (c *fieldCodec) instant(at time.Time, units int64) (number uint64) {
	if !at.IsZero() {
		number = 1 + protowire.EncodeZigZag(units)
	}
	c.varint(&number)
	return number
}
