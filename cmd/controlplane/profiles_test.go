package main

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

func TestServeProfiles_EndsWithTheProgram(t *testing.T) {
	free, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	if err := free.Close(); err != nil {
		t.Fatal(err)
	}
	stop, err := serveProfiles(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	get := func() (string, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/debug/pprof/goroutine?debug=1", http.NoBody)
		if err != nil {
			return "", err
		}
		resp, err := client.Do(req)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close() //nolint:errcheck // nothing depends on it
		text, err := io.ReadAll(resp.Body)
		return string(text), err
	}
	if text, err := get(); err != nil || !strings.Contains(text, "TestServeProfiles_EndsWithTheProgram") {
		t.Errorf("the profile of goroutines lacks this test: %.300q, %v", text, err)
	}
	stop()
	if _, err := get(); err == nil {
		t.Error("profiles are served after the stop")
	}
}
