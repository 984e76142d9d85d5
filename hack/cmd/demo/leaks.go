package main

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// leakDetector generates the value of a Secret, and searches for it in places that must not contain it.
type leakDetector struct {
	secret    string
	transport http.RoundTripper

	mu      sync.Mutex
	answers map[string]bool // requests whose answers contained the value
}

func newLeakDetector(transport http.RoundTripper) *leakDetector {
	return &leakDetector{secret: rand.Text(), transport: transport, answers: map[string]bool{}}
}

// client returns an HTTP client whose answers are searched.
func (l *leakDetector) client() *http.Client { return &http.Client{Transport: l} }

// RoundTrip implements http.RoundTripper.
func (l *leakDetector) RoundTrip(req *http.Request) (*http.Response, error) {
	answer, err := l.transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close() // a body that was only read
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	answer.Body = io.NopCloser(bytes.NewReader(body))
	if l.contains(string(body)) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.answers[req.Method+" "+req.URL.Path] = true
	}
	return answer, nil
}

// contains reports whether a text contains the value, plain or in base64.
func (l *leakDetector) contains(text string) bool {
	return strings.Contains(text, l.secret) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(l.secret)))
}

// check returns a sentence for each place with the value.
func (l *leakDetector) check(logs map[string]string) []string {
	var differences []string
	for _, place := range l.places(logs) {
		differences = append(differences, "web: expected the agent to keep the Secret's value in the cluster, it is in "+place)
	}
	return differences
}

// places returns the places with the value: answers so far, and logs by name.
func (l *leakDetector) places(logs map[string]string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var places []string
	for request := range l.answers {
		places = append(places, "the answer to "+request)
	}
	for name, text := range logs {
		if l.contains(text) {
			places = append(places, "the log of the "+name)
		}
	}
	return slices.Sorted(slices.Values(places))
}
