package informers

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// protoFields has the fields of a protobuf message that are decoded, by their numbers. A nil value selects a whole field, and
// another one selects fields of a message. See k8s.io/api/core/v1/generated.proto and k8s.io/apimachinery/pkg/apis/meta/v1/generated.proto.
type protoFields map[protowire.Number]protoFields

// podFields has the fields that trimPod reads, and eventFields those that newCachedEvent reads.
var (
	podFields = protoFields{
		1: metadataFields,
		2: { // spec
			1:  {1: nil, 2: {10: nil, 29: {}}}, // volumes: name; source: persistentVolumeClaim, whether ephemeral
			2:  containerFields,
			20: containerFields, // initContainers
			3:  nil,             // restartPolicy
			10: nil,             // nodeName
		},
		3: { // status
			1: nil, 2: nil, 3: nil, 4: nil, // phase, conditions, message, reason
			7: nil, 11: nil, // startTime, nominatedNodeName
			8:  statusFields, // containerStatuses
			10: statusFields, // initContainerStatuses
			13: statusFields, // ephemeralContainerStatuses
		},
	}
	eventFields = protoFields{
		1: metadataFields,
		2: {1: nil, 2: nil, 3: nil, 4: nil, 5: nil}, // involvedObject: kind, namespace, name, uid, apiVersion
		3: nil, 4: nil, 5: {1: nil},                 // reason, message, source: component
		6: nil, 7: nil, 8: nil, 9: nil, 10: nil, // firstTimestamp, lastTimestamp, count, type, eventTime
		11: nil, 14: nil, // series, reportingComponent
	}
	// metadataFields are all but selfLink, generation and managedFields.
	metadataFields = protoFields{
		1: nil, 2: nil, 3: nil, 5: nil, 6: nil, // name, generateName, namespace, uid, resourceVersion
		8: nil, 9: nil, 10: nil, // creationTimestamp, deletionTimestamp, deletionGracePeriodSeconds
		11: nil, 12: nil, 13: nil, 14: nil, // labels, annotations, ownerReferences, finalizers
	}
	containerFields = protoFields{1: nil, 2: nil, 24: nil} // name, image, restartPolicy
	statusFields    = protoFields{                         // of a container
		1: nil, 2: nil, 3: nil, 4: nil, 5: nil, // name, state, lastState, ready, restartCount
		6: nil, 8: nil, 9: nil, // image, containerID, started
	}
)

// unmarshal decodes these fields of a message.
func (f protoFields) unmarshal(message []byte, into interface{ Unmarshal(data []byte) error }) error {
	buffer := getBuffer()
	defer buffers.Put(buffer)
	var err error
	if *buffer, err = f.appendTo((*buffer)[:0], message); err != nil {
		return fmt.Errorf("decode protobuf: %w", err)
	}
	return into.Unmarshal(*buffer) //nolint:wrapcheck // as client-go returns it
}

// buffers has *[]byte with any content, for objects that are encoded or decoded. Neither form shares memory with its buffer.
var buffers sync.Pool

func getBuffer() *[]byte {
	if buffer, ok := buffers.Get().(*[]byte); ok {
		return buffer
	}
	return new([]byte)
}

// appendTo appends these fields of a message.
func (f protoFields) appendTo(out, message []byte) ([]byte, error) {
	for len(message) > 0 {
		number, wireType, size := protowire.ConsumeField(message)
		if size < 0 {
			return out, protowire.ParseError(size)
		}
		field := message[:size]
		message = message[size:]
		below, ok := f[number]
		switch {
		case !ok:
		case below == nil || wireType != protowire.BytesType:
			out = append(out, field...)
		default:
			value, _ := protowire.ConsumeBytes(field[protowire.SizeTag(number):])
			begin := len(out)
			var err error
			if out, err = below.appendTo(out, value); err != nil {
				return out, err
			}
			var header [2 * binary.MaxVarintLen64]byte
			tag := protowire.AppendTag(header[:0], number, wireType)
			out = slices.Insert(out, begin, binary.AppendUvarint(tag, uint64(len(out)-begin))...) //nolint:gosec // not negative
		}
	}
	return out, nil
}

// fieldOf returns the value of a field of a message; nil if the message does not have it, or is malformed.
func fieldOf(message []byte, number protowire.Number) []byte {
	for len(message) > 0 {
		found, wireType, size := protowire.ConsumeField(message)
		switch {
		case size < 0:
			return nil
		case found == number && wireType == protowire.BytesType:
			value, _ := protowire.ConsumeBytes(message[protowire.SizeTag(number):])
			return value
		}
		message = message[size:]
	}
	return nil
}
