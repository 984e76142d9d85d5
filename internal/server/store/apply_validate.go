package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// Limits of a report set, as in the tags of the wire types.
const (
	MaxReports = 1000
	maxObjects = threeport.MaxTreeObjects

	maxWord    = 64
	maxVersion = 63
	maxUID     = 128
	maxName    = 253
	maxImage   = 1024
	maxReason  = 256 // also for the UID of an Event
	maxMessage = 65_536

	// maxDefinition is in bytes. No Kubernetes object is as large: the API server limits requests to 3 MiB, and etcd to
	// 1.5 MiB.
	maxDefinition = 4 << 20
)

var operations = []string{threeport.OperationAdded, threeport.OperationModified, threeport.OperationDeleted}

// SetError rejects a whole report set; nothing of it is applied. It quotes no value.
type SetError struct{ Detail string }

func (e *SetError) Error() string { return e.Detail }

// validateSet checks everything but the reports. The error is a [SetError].
func validateSet(set threeport.ReportSet) error {
	var c validator
	agent := set.Agent
	c.text("agent.clusterUID", agent.ClusterUID, 1, maxUID)
	c.text("agent.clusterName", agent.ClusterName, 0, maxName)
	c.text("agent.version", agent.Version, 0, maxUID)
	c.time("agent.time", &agent.Time)
	if !(agent.DelaySeconds >= 0 && agent.DelaySeconds <= maxDelaySeconds) { // also rejects NaN
		c.fail("agent.delaySeconds", "a number of at least 0")
	}
	c.count("agent.pending", agent.Pending)
	c.count("agent.deadLetters", agent.DeadLetters)
	c.count("agent.dropped", agent.Dropped)
	if len(set.Reports) > MaxReports {
		c.fail("reports", "a list of at most "+strconv.Itoa(MaxReports))
	}
	if c.err != nil {
		return &SetError{c.err.Error()}
	}
	return nil
}

// maxDelaySeconds is a thousand years. It excludes infinity, which JSON cannot encode.
const maxDelaySeconds = 1000 * 366 * 24 * 3600

// validateReport checks a report independently of stored data. The error quotes no value, since a definition may
// contain secrets.
func validateReport(r *threeport.Report) error {
	var c validator
	c.word("instance.type", r.Instance.Type, types)
	if r.Instance.ID <= 0 {
		c.fail("instance.id", "a number above 0")
	}
	c.count("version", int64(r.Version))
	bodies := 0
	if r.Operation != nil {
		bodies++
		c.operation(r.Operation)
	}
	if r.Event != nil {
		bodies++
		c.event(r.Event)
	}
	if r.Status != nil {
		bodies++
		c.status(r.Status)
	}
	if r.Tree != nil {
		bodies++
		c.tree(r.Tree)
	}
	if bodies != 1 {
		return errors.New("report: must have exactly one of operation, event, status and tree")
	}
	return c.result()
}

// validator keeps the first error that it finds.
type validator struct{ err *FieldError }

// result returns the first error, or nil.
func (c *validator) result() error {
	if c.err == nil {
		return nil
	}
	return c.err
}

func (c *validator) fail(field, accepted string) {
	if c.err == nil {
		c.err = &FieldError{field, accepted}
	}
}

// text checks the number of characters, and that a database can store the text.
func (c *validator) text(field, value string, least, most int) {
	switch {
	case !storable(value):
		c.fail(field, "UTF-8 without NUL")
	case len(value) >= least && len(value) <= most: // so many bytes are not more characters
	case least > 0:
		if n := utf8.RuneCountInString(value); n < least || n > most {
			c.fail(field, fmt.Sprintf("a text of %d to %d characters", least, most))
		}
	case utf8.RuneCountInString(value) > most:
		c.fail(field, fmt.Sprintf("a text of at most %d characters", most))
	}
}

func (c *validator) word(field, value string, accepted []string) {
	if !slices.Contains(accepted, value) {
		c.fail(field, oneOf(accepted))
	}
}

func (c *validator) count(field string, n int64) {
	if n < 0 {
		c.fail(field, "a number of at least 0")
	}
}

// time rejects the zero time and times that RFC 3339 cannot encode.
func (c *validator) time(field string, t *time.Time) {
	if t == nil {
		return
	}
	if year := t.UTC().Year(); year < 1970 || year > 9999 {
		c.fail(field, "a time in the years 1970 to 9999")
	}
}

func (c *validator) object(field string, o *threeport.ObjectRef) {
	var ref validator
	ref.text("group", o.Group, 0, maxName)
	ref.text("version", o.Version, 0, maxVersion)
	ref.text("kind", o.Kind, 0, maxName)
	ref.text("namespace", o.Namespace, 0, maxName)
	ref.text("name", o.Name, 0, maxName)
	ref.text("uid", o.UID, 0, maxUID)
	c.nested(field, ref)
}

// nested takes over the error of a part of the value.
func (c *validator) nested(field string, part validator) {
	if part.err != nil {
		c.fail(field+"."+part.err.Field, part.err.Accepted)
	}
}

func (c *validator) operation(o *threeport.OperationReport) {
	c.count("operation.resourceInstanceID", int64(o.ResourceInstanceID))
	c.object("operation.object", &o.Object)
	c.text("operation.object.uid", o.Object.UID, 1, maxUID)
	c.word("operation.operation", o.Operation, operations)
	switch given := hasDocument(o.Definition); {
	case o.Operation == threeport.OperationDeleted && given:
		c.fail("operation.definition", "omitted for DELETED")
	case o.Operation != threeport.OperationDeleted && !given:
		c.fail("operation.definition", "the object as JSON, except for DELETED")
	case len(o.Definition) > maxDefinition:
		c.fail("operation.definition", fmt.Sprintf("a JSON object of at most %d bytes", maxDefinition))
	}
}

// hasDocument reports whether raw is a document other than null.
func hasDocument(raw json.RawMessage) bool { return len(raw) > 0 && string(raw) != "null" }

func (c *validator) event(e *threeport.EventReport) {
	c.text("event.uid", e.UID, 1, maxReason)
	c.count("event.resourceInstanceID", int64(e.ResourceInstanceID))
	c.object("event.involved", &e.Involved)
	c.text("event.type", e.Type, 0, maxWord)
	c.text("event.reason", e.Reason, 0, maxReason)
	c.text("event.message", e.Message, 0, maxMessage)
	c.time("event.time", &e.Time)
	c.time("event.firstTime", e.FirstTime)
	c.count("event.count", e.Count)
	if e.Gap != nil {
		c.count("event.gap.normal", e.Gap.Normal)
		c.count("event.gap.warning", e.Gap.Warning)
		c.time("event.gap.first", &e.Gap.First)
		c.time("event.gap.last", &e.Gap.Last)
	}
}

func (c *validator) status(s *threeport.StatusReport) {
	c.word("status.status", s.Status, statuses)
	c.text("status.reason", s.Reason, 0, maxReason)
	c.text("status.cause", s.Cause, 0, maxMessage)
	c.time("status.since", s.Since)
	c.time("status.causeSince", s.CauseSince)
	c.count("status.pending", s.Pending)
	c.count("status.rejected", s.Rejected)
	c.count("status.dropped", s.Dropped)
}

func (c *validator) tree(t *threeport.TreeReport) {
	validateList(c, "tree.objects", t.Objects, maxObjects, (*validator).node)
	c.count("tree.filtered", t.Filtered)
}

// validateList checks the length of a list and its items, up to the first invalid one.
func validateList[T any](c *validator, field string, items []T, limit int, check func(*validator, *T)) {
	if len(items) > limit {
		c.fail(field, "a list of at most "+strconv.Itoa(limit))
	}
	for i := range items {
		var item validator
		check(&item, &items[i])
		if item.err != nil {
			c.nested(field+"["+strconv.Itoa(i)+"]", item)
			return
		}
	}
}

func (c *validator) node(o *threeport.TreeObject) {
	c.object("object", &o.Object)
	c.text("owner", o.Owner, 0, maxUID)
	c.count("resourceInstanceID", int64(o.ResourceInstanceID))
	c.text("state", o.State, 0, maxWord)
	c.word("health", o.Health, statuses)
	c.text("reason", o.Reason, 0, maxReason)
	c.text("cause", o.Cause, 0, maxMessage)
	c.time("since", o.Since)
	if o.Pod != nil {
		c.pod(o.Pod)
	}
}

func (c *validator) pod(f *threeport.PodFacts) {
	c.text("pod.node", f.Node, 0, maxName)
	validateList(c, "pod.containers", f.Containers, threeport.MaxContainers, (*validator).container)
}

func (c *validator) container(f *threeport.ContainerFacts) {
	c.text("name", f.Name, 0, maxName)
	c.word("type", f.Type, threeport.ContainerTypes)
	c.text("image", f.Image, 0, maxImage)
	c.word("state", f.State, threeport.ContainerStates)
	c.text("reason", f.Reason, 0, maxReason)
	c.count("restarts", f.Restarts)
	if exit := f.LastExit; exit != nil {
		c.text("lastExit.reason", exit.Reason, 0, maxReason)
		c.time("lastExit.time", exit.Time)
	}
}
