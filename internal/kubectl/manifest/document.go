package manifest

import (
	"cmp"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/threeport/threeport-agent/internal/kubectl/wrap"
)

// Document is an object of an input, or the error in its place.
type Document struct {
	// Source is the name of the input.
	Source string
	// Number is the number of the document in its source, from 1.
	Number int
	// Item is the number of the object in its document, from 1, if the document is a list; else 0.
	Item int
	// Line is the first line of the document.
	Line int
	// Object is the object without managedFields; nil if it could not be read. Whole numbers are exact and int64.
	Object map[string]any
	// Err is the error in the document. A [Flaw] is an error in an object that could be read.
	Err error
}

// Place returns the position of the document for a message.
func (d Document) Place() string {
	item := ""
	if d.Item > 0 {
		item = fmt.Sprintf(", item %d", d.Item)
	}
	if d.Number == 0 {
		return d.Source
	}
	return fmt.Sprintf("%s: document %d%s (line %d)", d.Source, d.Number, item, d.Line)
}

// Flaw is the error in an object that could be read, such as one without a valid kind or apiVersion.
type Flaw struct {
	// Reason is one CamelCase word.
	Reason string
	// Message is a sentence for a person.
	Message string
}

func (f *Flaw) Error() string { return f.Message }

// maxListDepth bounds the nesting of lists.
const maxListDepth = 4

// expand returns the objects of a document: the document itself, or the items of a list.
func expand(line int, value any) []Document {
	switch v := value.(type) {
	case nil: // an empty document
		return nil
	case map[string]any:
		items, ok := itemsOf(v)
		if !ok {
			d := object(v)
			d.Line = line
			return []Document{d}
		}
		return expandItems(nil, line, items, v, 1)
	case []any:
		return expandItems(nil, line, v, nil, 1)
	default:
		err := fmt.Errorf("%s is not an object: want a mapping with apiVersion, kind and metadata", excerpt(v))
		return []Document{{Line: line, Err: err}}
	}
}

// itemsOf returns the items of a list. Unlike other objects with a field items, a list has no name.
//
// Source: API conventions, "Types (Kinds)": a list's kind ends with List, and its metadata is a ListMeta.
func itemsOf(object map[string]any) ([]any, bool) {
	kind, _ := object["kind"].(string)
	meta, _ := object["metadata"].(map[string]any)
	if !strings.HasSuffix(kind, "List") || meta["name"] != nil {
		return nil, false
	}
	items, ok := object["items"].([]any)
	return items, ok || kind == "List" && object["items"] == nil
}

func expandItems(docs []Document, line int, items []any, list map[string]any, depth int) []Document {
	for _, item := range items {
		d := Document{}
		o, isObject := item.(map[string]any)
		inner, isList := itemsOf(o)
		switch {
		case !isObject:
			d.Err = fmt.Errorf("%s is not an object: want a mapping with apiVersion, kind and metadata", excerpt(item))
		case isList && depth < maxListDepth:
			docs = expandItems(docs, line, inner, o, depth+1)
			continue
		case isList:
			d.Err = fmt.Errorf("lists are nested more than %d deep", maxListDepth)
		default:
			inherit(o, list)
			d = object(o)
		}
		d.Line, d.Item = line, len(docs)+1
		docs = append(docs, d)
	}
	return docs
}

// inherit sets the kind of an item in a list of one kind, such as a PodList. API servers leave it out.
func inherit(item, list map[string]any) {
	kind, _ := list["kind"].(string)
	if kind = strings.TrimSuffix(kind, "List"); kind == "" || item["kind"] != nil || item["apiVersion"] != nil {
		return
	}
	item["kind"], item["apiVersion"] = kind, list["apiVersion"]
}

// object returns the document of an object, with its flaw if it has one.
func object(o map[string]any) Document {
	if meta, ok := o["metadata"].(map[string]any); ok {
		delete(meta, "managedFields")
	}
	d := Document{Object: o}
	if flaw := flawOf(o); flaw != nil {
		d.Err = flaw
	}
	return d
}

func flawOf(o map[string]any) *Flaw {
	kind, isText := o["kind"].(string)
	switch {
	case o["kind"] == nil || isText && kind == "":
		return &Flaw{"NoKind", "the object has no kind"}
	case !isText:
		return &Flaw{"NoKind", fmt.Sprintf("the kind is %s, and not a string", excerpt(o["kind"]))}
	}
	version, isText := o["apiVersion"].(string)
	switch {
	case o["apiVersion"] == nil || isText && version == "":
		return &Flaw{"NoAPIVersion", kind + " has no apiVersion"}
	case !isText:
		return &Flaw{"NoAPIVersion", fmt.Sprintf("the apiVersion of %s is %s, and not a string", kind, excerpt(o["apiVersion"]))}
	}
	if gv, err := schema.ParseGroupVersion(version); err != nil || gv.Version == "" {
		return &Flaw{"NoAPIVersion", fmt.Sprintf("the apiVersion %q of %s is not VERSION or GROUP/VERSION", version, kind)}
	}
	return nil
}

// excerpt returns a value as an error shows it.
func excerpt(value any) string {
	switch v := value.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "a mapping"
	case []any:
		return "a list"
	case string:
		const most = 40
		return fmt.Sprintf("%q", wrap.Shorten(v, most))
	default:
		return cmp.Or(fmt.Sprint(v), "nothing")
	}
}
