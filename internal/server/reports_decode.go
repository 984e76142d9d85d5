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
	// maxTree and maxObjects bound the objects of one tree, and of all trees in a set. An object of three bytes of JSON
	// takes a hundred times that in memory: counting bytes is not enough.
	maxTree    = 20_000
	maxObjects = 100_000

	// maxFaults is how many faults an answer lists.
	maxFaults = 20
)

// setDecoder reads a report set as it arrives: the text of one value is all that it keeps besides what it has read. It
// takes what the document of the API says and nothing else: names are case-sensitive, none may be unknown, and none may
// come twice.
type setDecoder struct {
	text *setText
	// At most so many reports, objects of a tree, and objects of all trees.
	maxReports, maxTree, maxObjects int

	objects int             // so far
	value   json.RawMessage // the text of the last one
	faults  []*huma.ErrorDetail
}

// decodeReportSet reads a whole report set. Its error is a problem, 400 for what is no JSON, 413 for too much and 422
// for JSON that is no report set, or the reader's own.
func decodeReportSet(r io.Reader, maxReports int) (threeport.ReportSet, error) {
	d := &setDecoder{text: decoderOf(r), maxReports: maxReports, maxTree: maxTree, maxObjects: maxObjects}
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

// asProblem says what the JSON decoder found; any other error stays what it is.
func (d *setDecoder) asProblem(err error) error {
	if isSyntax, offset := strictjson.SyntaxErrorOffset(err); isSyntax {
		if d.text.shortened { // the decoder did not see all bytes
			return problem(http.StatusBadRequest, "the body is not JSON")
		}
		return problem(http.StatusBadRequest, "the body is not JSON: see byte "+strconv.FormatInt(offset, 10))
	}
	if errors.Is(err, errValueTooLarge) {
		return problem(http.StatusRequestEntityTooLarge, fmt.Sprintf("a value in the body is too large: accepted are %d bytes", d.text.most))
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return problem(http.StatusBadRequest, "the body ends before its JSON does")
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
				if len(d.faults) == 0 { // else nobody reads it
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
		if name != "objects" {
			return false, nil
		}
		return true, d.list(at, d.maxTree, func(at string) error {
			if d.objects++; d.objects > d.maxObjects {
				return tooMany("body", d.maxObjects, "objects in all trees")
			}
			if len(d.faults) >= maxFaults {
				return invalid(d.faults)
			}
			var object threeport.TreeObject
			err := d.read(at, &object)
			if len(d.faults) == 0 { // else nobody reads it
				tree.Objects = append(tree.Objects, object)
			}
			return err
		})
	})
}

// object reads an object whose fields field knows, and has to have those that are required.
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
		name, _ := token.(string) // that is what valid JSON has here
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

// field reads the value of one field. Of those that are unknown nothing is remembered.
func (d *setDecoder) field(at, name string, seen map[string]bool, read func(at, name string) (known bool, err error)) error {
	if seen[name] {
		d.fault(at, "is there twice")
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
		d.fault(at, "is no field of this object")
		return d.skip()
	}
}

func (d *setDecoder) skip() error { return d.text.json.Decode(&d.value) }

// list reads a list of at most limit items.
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

// read reads a value of a type that has no lists.
func (d *setDecoder) read(at string, target any) error {
	if err := d.text.json.Decode(&d.value); err != nil {
		return err
	}
	text := d.value
	value := reflect.ValueOf(target).Elem()
	if string(text) == "null" && value.Kind() != reflect.Pointer {
		d.fault(at, "is required")
		return nil
	}
	strict, err := strictjson.UnmarshalStrict(text, target)
	if err != nil {
		below, expected := misfit(target, text)
		d.fault(at+below, "has to be "+expected)
	} else {
		d.required(at, value, text)
	}
	for _, err := range strict {
		if field, ok := errors.AsType[strictjson.FieldError](err); ok {
			d.fault(at+"."+shortened(field.FieldPath()), "is no field of this object, or is there twice")
		}
	}
	return nil
}

// fault remembers what is wrong with a field; after the first few it is silent.
func (d *setDecoder) fault(at, message string) {
	if len(d.faults) < maxFaults {
		d.faults = append(d.faults, &huma.ErrorDetail{Location: at, Message: message})
	}
}

// tooMany is the answer to a list that is too long.
func tooMany(at string, limit int, what string) error {
	return problem(http.StatusRequestEntityTooLarge, "too much for one report set: send it in parts",
		&huma.ErrorDetail{Location: at, Message: "accepted are at most " + strconv.Itoa(limit) + " " + what})
}

// shortened bounds a name that the client chose.
func shortened(name string) string {
	const longest = 128
	if len(name) > longest {
		return name[:longest] + "…"
	}
	return name
}
