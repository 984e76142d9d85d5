package server

import (
	"fmt"
	"net/http"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

// list answers with a page of any length: it holds one chunk of rows at a time.
func (v *v0API) list(req *v0Request) error {
	selection, err := selectionOf(req.resource, req.URL.Query())
	if err != nil {
		return err
	}
	if err := v.authorizeList(req.Context(), req.resource, &selection); err != nil {
		return err
	}
	held, err := v.acquireList(req, selection)
	if err != nil {
		return err
	}
	defer held.release()
	page, err := v.store.List(req.Context(), req.resource, selection)
	if err != nil {
		return err
	}
	if !selection.IsFiltered() {
		held.search.release() // the rows are counted, and the next chunks are found by ID
	}
	rows, err := v.nextRows(req, page)
	if err != nil {
		return err
	}
	meta := threeport.Meta{Page: selection.Page, Size: selection.Size, TotalCount: page.Total}
	if page.IsRead() {
		held.chunk.shrink(v0Copies * req.format().size(rows))
		writeRows(req.w, req.format(), http.StatusOK, meta, rows...)
		return nil
	}
	v.streamRows(req, meta, page, rows)
	return nil
}

// heldList has the reservations of a list. Those that it does not need are nil.
type heldList struct{ longList, search, chunk *reservation }

func (h *heldList) release() {
	for _, held := range []*reservation{h.longList, h.search, h.chunk} {
		held.release()
	}
}

// acquireList reserves a slot for a long list and one for a search, and then the memory of a chunk: a request that holds memory
// waits for no such slot.
func (v *v0API) acquireList(req *v0Request, selection store.Selection) (*heldList, error) {
	held := &heldList{}
	for _, slot := range []struct {
		needed bool
		from   *limiter
		held   **reservation
		none   error
	}{
		{selection.Size < 0 || selection.Size > longList, v.limits.longLists, &held.longList, errLongLists},
		{selection.IsSearch(req.resource), v.limits.searches, &held.search, errSearches},
	} {
		if !slot.needed {
			continue
		}
		got, err := slot.from.acquire(req.Context(), senderOf(req.Request), 1)
		if err != nil {
			held.release()
			return nil, fmt.Errorf("%w: %w", slot.none, err)
		}
		*slot.held = got
	}
	var err error
	if held.chunk, err = req.acquire(v.limits.answers, int64(req.resource.MaxChunkBytes())); err != nil {
		held.release()
		return nil, err
	}
	return held, nil
}

// nextRows reads the next chunk of a page, if the principal may read all rows of it.
func (v *v0API) nextRows(req *v0Request, page *store.Page) ([]store.Row, error) {
	rows, err := page.Next(req.Context())
	if err != nil {
		return nil, err
	}
	return rows, v.authorizeRead(req.Context(), req.resource, rows...)
}

// streamRows writes a page chunk by chunk. The answer has begun when a later chunk fails, so it is cut off: no client takes it
// for the whole page.
func (v *v0API) streamRows(req *v0Request, meta threeport.Meta, page *store.Page, rows []store.Row) {
	req.w.Header().Set("Content-Type", jsonType)
	req.w.WriteHeader(http.StatusOK)
	text := appendHead(nil, req.resource, meta)
	for len(rows) > 0 {
		text = appendRows(text, req.format(), rows)
		if _, err := req.w.Write(text); err != nil {
			return // the client has gone
		}
		var err error
		if rows, err = v.nextRows(req, page); err != nil {
			v.logFailure(req.Request, err, toHTTPError(err))
			panic(http.ErrAbortHandler)
		}
		text = append(text[:0], ',')
	}
	_, _ = req.w.Write(appendTail(nil, http.StatusOK)) // fails only if the client has gone
}
