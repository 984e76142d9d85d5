package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	strictjson "sigs.k8s.io/json"

	"github.com/threeport/threeport-agent/internal/threeport"
)

const (
	// maxTree and maxObjects bound the objects of one tree, and of all trees in a set. A bound in bytes is not enough: an
	// object of three bytes of JSON takes a hundred times that in memory, and a row that other sets wait for.
	maxTree    = threeport.MaxTreeObjects
	maxObjects = threeport.MaxTreeObjects

	// maxContainers bounds the containers of all trees in a set, for the same reason.
	maxContainers = threeport.MaxTreeContainers

	// maxObjectCommas bounds the commas of an object of a tree outside of texts. A Pod with as many containers as are accepted has
	// fewer. So an object has no more containers in memory than this.
	maxObjectCommas = 16 * threeport.MaxContainers

	// maxTraceparent bounds the trace of a report, in bytes. W3C Trace Context has ASCII characters only.
	maxTraceparent = 256

	// maxFaults bounds the faults in an answer.
	maxFaults = 20
)

// setDecoder decodes a report set as a stream: besides the result it keeps the text of one value. It accepts only what the
// OpenAPI document describes: names are case-sensitive, and unknown and duplicate fields are refused.
type setDecoder struct {
	text *setText
	// Bounds of reports, objects of a tree, and objects and containers of all trees.
	maxReports, maxTree, maxObjects, maxContainers int

	objects, containers int             // of all trees so far
	value               json.RawMessage // the text of the last value
	faults              []*huma.ErrorDetail
}

// decodeReportSet decodes a whole report set. Its error is the reader's or a problem: 400 for invalid JSON, 413 for a set
// that is too large, and 422 for JSON that is no report set.
func decodeReportSet(r io.Reader, maxReports int) (threeport.ReportSet, error) {
	d := &setDecoder{text: newSetText(r), maxReports: maxReports, maxTree: maxTree, maxObjects: maxObjects, maxContainers: maxContainers}
	return d.decode()
}

func (d *setDecoder) decode() (set threeport.ReportSet, err error) {
	if err := d.set(&set); err != nil {
		return set, d.asProblem(err)
	}
	if len(d.faults) > 0 {
		return set, invalid(d.faults)
	}
	return set, nil
}

// asProblem maps an error of the JSON decoder to a problem, and returns any other error unchanged.
func (d *setDecoder) asProblem(err error) error {
	if isSyntax, offset := strictjson.SyntaxErrorOffset(err); isSyntax {
		if d.text.shortened { // the decoder's offset counts fewer bytes than were sent
			return problem(http.StatusBadRequest, "the body is not JSON")
		}
		return problem(http.StatusBadRequest, "the body is not JSON: see byte "+strconv.FormatInt(offset, 10))
	}
	if errors.Is(err, errValueTooLarge) {
		return problem(http.StatusRequestEntityTooLarge, fmt.Sprintf("a value in the body is too large: at most %d bytes", d.text.maxValue))
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return problem(http.StatusBadRequest, "the body ends before its JSON does")
	}
	if _, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // it quotes the number
		return problem(http.StatusBadRequest, "the body has a number where none can be, beyond the range of JSON numbers")
	}
	return err
}

func (d *setDecoder) set(set *threeport.ReportSet) error {
	err := d.object("body", []string{"agent", "reports"}, func(at, name string) (bool, error) {
		switch name {
		case "agent":
			return true, d.read(at, &set.Agent)
		case "reports":
			return true, d.list(at, d.maxReports, func(at string) error {
				var report threeport.Report
				err := d.report(at, &report)
				if len(d.faults) == 0 { // a set with a fault is refused
					set.Reports = append(set.Reports, report)
				}
				return err
			})
		}
		return false, nil
	})
	if err != nil {
		return err
	}
	if _, err := d.text.json.Token(); !errors.Is(err, io.EOF) {
		if err != nil {
			return err
		}
		return problem(http.StatusBadRequest, "the body goes on after its JSON")
	}
	return nil
}

func (d *setDecoder) report(at string, report *threeport.Report) error {
	return d.object(at, []string{"instance", "version"}, func(at, name string) (bool, error) {
		switch name {
		case "instance":
			return true, d.read(at, &report.Instance)
		case "version":
			return true, d.read(at, &report.Version)
		case "traceparent":
			err := d.read(at, &report.Traceparent)
			if len(report.Traceparent) > maxTraceparent {
				report.Traceparent = "" // as any invalid one
			}
			return true, err
		case "operation":
			return true, d.read(at, &report.Operation)
		case "event":
			return true, d.read(at, &report.Event)
		case "status":
			return true, d.read(at, &report.Status)
		case "tree":
			report.Tree = &threeport.TreeReport{}
			return true, d.tree(at, report.Tree)
		}
		return false, nil
	})
}

func (d *setDecoder) tree(at string, tree *threeport.TreeReport) error {
	return d.object(at, []string{"objects"}, func(at, name string) (bool, error) {
		switch name {
		case "objects":
			return true, d.treeObjects(at, tree)
		case "filtered":
			return true, d.read(at, &tree.Filtered)
		}
		return false, nil
	})
}

func (d *setDecoder) treeObjects(at string, tree *threeport.TreeReport) error {
	return d.list(at, d.maxTree, func(at string) error {
		if d.objects++; d.objects > d.maxObjects {
			return tooMany("body", d.maxObjects, "objects in all trees")
		}
		if len(d.faults) >= maxFaults {
			return invalid(d.faults)
		}
		var object threeport.TreeObject
		err := d.treeObject(at, &object)
		if len(d.faults) == 0 { // a set with a fault is refused
			tree.Objects = append(tree.Objects, object)
		}
		return err
	})
}

func (d *setDecoder) treeObject(at string, object *threeport.TreeObject) error {
	if err := d.text.json.Decode(&d.value); err != nil {
		return err
	}
	if threeport.HasMoreCommas(d.value, maxObjectCommas) {
		d.fault(at+".pod.containers", "at most "+strconv.Itoa(threeport.MaxContainers)+" items")
		return nil
	}
	d.unmarshal(at, object)
	if object.Pod != nil {
		if d.containers += len(object.Pod.Containers); d.containers > d.maxContainers {
			return tooMany("body", d.maxContainers, "containers in all trees")
		}
	}
	return nil
}

// object decodes an object with field, which reports whether it knows a field. The required fields have to be there.
func (d *setDecoder) object(at string, required []string, field func(at, name string) (known bool, err error)) error {
	if err := d.open(at, '{', "an object"); err != nil {
		return err
	}
	seen := map[string]bool{}
	for d.text.json.More() {
		if len(d.faults) >= maxFaults {
			return invalid(d.faults)
		}
		token, err := d.text.json.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string) // as in all valid JSON
		if err := d.field(at+"."+shortened(name), name, seen, field); err != nil {
			return err
		}
	}
	for _, name := range required {
		if !seen[name] {
			d.fault(at+"."+name, "is required")
		}
	}
	_, err := d.text.json.Token()
	return err
}

// field decodes the value of one field. It keeps no names of unknown fields, whose number has no bound.
func (d *setDecoder) field(at, name string, seen map[string]bool, read func(at, name string) (known bool, err error)) error {
	if seen[name] {
		d.fault(at, "duplicate field")
		return d.skip()
	}
	known, err := read(at, name)
	switch {
	case err != nil:
		return err
	case known:
		seen[name] = true
		return nil
	default:
		d.fault(at, "unknown field")
		return d.skip()
	}
}

func (d *setDecoder) skip() error { return d.text.json.Decode(&d.value) }

// list decodes a list of at most limit items.
func (d *setDecoder) list(at string, limit int, item func(at string) error) error {
	if err := d.open(at, '[', "a list"); err != nil {
		return err
	}
	for i := 0; d.text.json.More(); i++ {
		if i == limit {
			return tooMany(at, limit, "items")
		}
		if err := item(at + "[" + strconv.Itoa(i) + "]"); err != nil {
			return err
		}
	}
	_, err := d.text.json.Token()
	return err
}

func (d *setDecoder) open(at string, delim json.Delim, expected string) error {
	token, err := d.text.json.Token()
	if err != nil {
		return err
	}
	if token != delim {
		d.fault(at, "has to be "+expected)
		return invalid(d.faults)
	}
	return nil
}

// read decodes a value of a type without lists.
func (d *setDecoder) read(at string, target any) error {
	if err := d.text.json.Decode(&d.value); err != nil {
		return err
	}
	d.unmarshal(at, target)
	return nil
}

// unmarshal decodes the last value.
func (d *setDecoder) unmarshal(at string, target any) {
	text := d.value
	value := reflect.ValueOf(target).Elem()
	if string(text) == "null" && value.Kind() != reflect.Pointer {
		d.fault(at, "is required")
		return
	}
	strict, err := strictjson.UnmarshalStrict(text, target)
	if err != nil {
		below, expected := findMismatch(target, text)
		d.fault(at+below, "has to be "+expected)
	} else {
		d.required(at, value, text)
	}
	for _, err := range strict {
		if field, ok := errors.AsType[strictjson.FieldError](err); ok {
			d.fault(at+"."+shortened(field.FieldPath()), "unknown or duplicate field")
		}
	}
}

// fault records what is wrong with a field, up to maxFaults.
func (d *setDecoder) fault(at, message string) {
	if len(d.faults) < maxFaults {
		d.faults = append(d.faults, &huma.ErrorDetail{Location: at, Message: message})
	}
}

// tooMany is the answer to a list that is too long.
func tooMany(at string, limit int, what string) error {
	return problem(http.StatusRequestEntityTooLarge, "too much for one report set: send it in parts",
		&huma.ErrorDetail{Location: at, Message: "at most " + strconv.Itoa(limit) + " " + what})
}

// shortened bounds the length of a name that the client chose.
func shortened(name string) string {
	const longest = 128
	if len(name) > longest {
		return name[:longest] + "…"
	}
	return name
}
