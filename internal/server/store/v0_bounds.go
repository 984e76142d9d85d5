package store

import "fmt"

// Earlier versions stored texts and documents of any size. A long text is cut when it is read. SQLite loads a whole text to
// cut it, so a text above maxLoadedBytes is replaced.
const (
	maxLoadedBytes = 1 << 20

	replacedText     = "[more than 1 MiB]"
	replacedDocument = `"[more than 4 MiB]"` // a JSON string
)

// bounded is the expression of a field's column that has a bounded size. octet_length loads no value in either database, and
// texts within the limits of v0 and of report sets stay as they are.
func (f Field) bounded() string {
	switch f.Kind {
	case Text:
		return boundedText(f.Column())
	case Document:
		return fmt.Sprintf("CASE WHEN octet_length(%[1]s) > %d THEN '%s' ELSE %[1]s END", f.Column(), f.MaxBytes, replacedDocument)
	case Integer, Boolean, Timestamp:
	}
	return f.Column()
}

// boundedText is the expression of a column with a text, of at most maxMessage characters.
func boundedText(column string) string { return cutText(column, maxMessage) }

// cutText is the expression of a column with a text, of at most length characters.
func cutText(column string, length int) string {
	return fmt.Sprintf("CASE WHEN octet_length(%[1]s) > %d THEN '%s' WHEN octet_length(%[1]s) > %[4]d THEN substr(%[1]s, 1, %[4]d) ELSE %[1]s END",
		column, maxLoadedBytes, replacedText, length)
}

// boundedColumns are the columns of a row with bounded sizes, in the order of scan.
func (r *Resource) boundedColumns() string { return r.columnList(Field.bounded) }

// referenceColumns are the columns of a row in the order of scan, with NULL for each text and document, and the size of
// these.
func (r *Resource) referenceColumns() string {
	size := "0"
	columns := r.columnList(func(f Field) string {
		if f.MaxBytes == 0 {
			return f.Column()
		}
		size += fmt.Sprintf(" + CASE WHEN octet_length(%[1]s) <= %d THEN octet_length(%[1]s) ELSE 0 END", f.Column(), f.MaxBytes)
		return "NULL"
	})
	return columns + ", " + size
}

// JSONBytes is about the size of a row's texts and documents in an answer.
func (r *Resource) JSONBytes(row Row) (n int) {
	for i, f := range r.Fields {
		text, _ := row.Values[i].(string)
		if f.Kind == Text {
			n += jsonBytes(text)
		} else {
			n += len(text)
		}
	}
	return n
}

// MaxChunkBytes limits the texts and documents of a chunk of a [Page], in bytes of JSON.
func (r *Resource) MaxChunkBytes() int {
	bytes := maxPageBytes
	for _, f := range r.Fields {
		if f.Kind == Text {
			bytes += maxEscape * f.MaxBytes
		} else {
			bytes += f.MaxBytes
		}
	}
	return bytes
}
