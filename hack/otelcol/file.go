package main

import (
	"context"
	"errors"
	"os"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// fileConfig configures the exporter `file`. A path belongs to one pipeline.
type fileConfig struct {
	Path string `mapstructure:"path"`
}

// Validate implements the collector's interface of configurations.
func (c *fileConfig) Validate() error {
	if c.Path == "" {
		return errors.New("path is required")
	}
	return nil
}

// newFileFactory returns the factory of an exporter of logs and traces. It appends each request to a file, as a line of OTLP's JSON.
func newFileFactory() exporter.Factory {
	return exporter.NewFactory(component.MustNewType("file"), func() component.Config { return &fileConfig{} },
		exporter.WithLogs(func(_ context.Context, _ exporter.Settings, c component.Config) (exporter.Logs, error) {
			return &logsFile{file: file{path: c.(*fileConfig).Path}}, nil
		}, component.StabilityLevelDevelopment),
		exporter.WithTraces(func(_ context.Context, _ exporter.Settings, c component.Config) (exporter.Traces, error) {
			return &tracesFile{file: file{path: c.(*fileConfig).Path}}, nil
		}, component.StabilityLevelDevelopment))
}

// file is a file with a line for each request. It is safe for concurrent use after Start.
type file struct {
	path string
	mu   sync.Mutex
	open *os.File
}

// Start implements component.Component.
func (f *file) Start(context.Context, component.Host) (err error) {
	f.open, err = os.OpenFile(f.path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return err
}

// Shutdown implements component.Component.
func (f *file) Shutdown(context.Context) error {
	if f.open == nil {
		return nil
	}
	return f.open.Close()
}

// Capabilities implements consumer.Logs and consumer.Traces.
func (f *file) Capabilities() consumer.Capabilities { return consumer.Capabilities{} }

// write appends a line with one system call, so that a killed collector leaves no part of it.
func (f *file) write(line []byte, err error) error {
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	_, err = f.open.Write(append(line, '\n'))
	return err
}

type logsFile struct {
	file
	encoder plog.JSONMarshaler
}

// ConsumeLogs implements consumer.Logs.
func (f *logsFile) ConsumeLogs(_ context.Context, logs plog.Logs) error {
	return f.write(f.encoder.MarshalLogs(logs))
}

type tracesFile struct {
	file
	encoder ptrace.JSONMarshaler
}

// ConsumeTraces implements consumer.Traces.
func (f *tracesFile) ConsumeTraces(_ context.Context, traces ptrace.Traces) error {
	return f.write(f.encoder.MarshalTraces(traces))
}
