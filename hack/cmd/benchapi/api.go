package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/threeport/threeport-agent/internal/threeport"
)

// api is a client of the API. It is not the agent's client, because the server is measured.
type api struct {
	url  string
	http *http.Client
	zstd *zstd.Encoder
}

func newAPI(url string) (*api, error) {
	encoder, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return nil, fmt.Errorf("make zstd encoder: %w", err)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = 256
	return &api{url: url, http: &http.Client{Transport: transport}, zstd: encoder}, nil
}

// exchange sends a request, and decodes the answer into out unless that is nil.
func (a *api) exchange(ctx context.Context, method, path, encoding string, body []byte, out any) error {
	req, err := http.NewRequestWithContext(ctx, method, a.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if encoding != "" {
		req.Header.Set("Content-Encoding", encoding)
	}
	answer, err := a.http.Do(req)
	if err != nil {
		return err
	}
	defer answer.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	if answer.StatusCode >= 300 {
		return fmt.Errorf("%s %s: %s: %.300s", method, path, answer.Status, text)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(text, out)
}

// get reads a page of an endpoint.
func (a *api) get(ctx context.Context, path string) error {
	return a.exchange(ctx, http.MethodGet, path, "", nil, nil)
}

// send sends a report set, and expects the API to accept all reports.
func (a *api) send(ctx context.Context, set threeport.ReportSet) error {
	body, err := json.Marshal(set)
	if err != nil {
		return err
	}
	var answer threeport.ReportSetAnswer
	if err := a.exchange(ctx, http.MethodPost, "/v0/workload-report-sets", "zstd", a.zstd.EncodeAll(body, nil), &answer); err != nil {
		return err
	}
	if len(answer.Items) != len(set.Reports) {
		return fmt.Errorf("a set of %d reports has %d answers", len(set.Reports), len(answer.Items))
	}
	for i, item := range answer.Items {
		if item.Problem != nil {
			return fmt.Errorf("report %d was rejected: %s: %s", i, item.Problem.Code, item.Problem.Detail)
		}
	}
	return nil
}

// create creates a row by v0, and returns its ID.
func (a *api) create(ctx context.Context, path string, row any) (int64, error) {
	body, err := json.Marshal(row)
	if err != nil {
		return 0, err
	}
	var answer threeport.Response[struct{ ID int64 }]
	if err := a.exchange(ctx, http.MethodPost, "/v0/"+path, "", body, &answer); err != nil {
		return 0, err
	}
	if len(answer.Data) != 1 {
		return 0, errors.New(strings.TrimPrefix(path, "/") + ": the answer has no row")
	}
	return answer.Data[0].ID, nil
}
