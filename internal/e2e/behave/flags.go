package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"time"
)

// behaviour is the parsed command line.
type behaviour struct {
	listen         string
	unready        bool
	unhealthy      bool
	unstarted      bool
	readyAfter     time.Duration
	unhealthyAfter time.Duration
	exits          bool // --exit-after or --exit-code is given
	exitAfter      time.Duration
	exitCode       int
	allocate       size
	allocateAfter  time.Duration
	ignoreSIGTERM  bool
	sleepOnSIGTERM time.Duration
	message        string
	terminationLog string
}

// parse parses the flags, and prints errors to stderr.
func parse(args []string, stderr io.Writer) (behaviour, error) {
	var b behaviour
	flags := flag.NewFlagSet("behave", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&b.listen, "listen", "", "`address` to serve /healthz, /readyz and /startupz on, such as :8080; empty for none")
	flags.BoolVar(&b.unready, "unready", false, "answer 500 on /readyz")
	flags.BoolVar(&b.unhealthy, "unhealthy", false, "answer 500 on /healthz")
	flags.BoolVar(&b.unstarted, "unstarted", false, "answer 500 on /startupz")
	flags.DurationVar(&b.readyAfter, "ready-after", 0, "answer 500 on /readyz until then")
	flags.DurationVar(&b.unhealthyAfter, "unhealthy-after", 0, "answer 500 on /healthz from then on; 0 for never")
	flags.DurationVar(&b.exitAfter, "exit-after", 0, "end after this long, with --exit-code; 0s for at once; if neither is given, run until SIGTERM")
	flags.IntVar(&b.exitCode, "exit-code", 0, "exit `code` of that end, 0 to 255; without --exit-after, end at once")
	flags.TextVar(&b.allocate, "allocate", size(0), "`memory` to occupy, such as 64Mi; it grows in steps, and is kept")
	flags.DurationVar(&b.allocateAfter, "allocate-after", 0, "begin with that after this long")
	flags.BoolVar(&b.ignoreSIGTERM, "ignore-sigterm", false, "go on at SIGTERM, so that it takes SIGKILL")
	flags.DurationVar(&b.sleepOnSIGTERM, "sleep-on-sigterm", 0, "go on for this long at SIGTERM, and then end with exit code 0")
	flags.StringVar(&b.message, "message", "", "`text` to print, and to write to --termination-log")
	flags.StringVar(&b.terminationLog, "termination-log", "/dev/termination-log", "`file` for --message, if it exists")
	if err := flags.Parse(args); err != nil {
		return b, err
	}
	flags.Visit(func(f *flag.Flag) { b.exits = b.exits || f.Name == "exit-after" || f.Name == "exit-code" })
	err := b.validate(flags.Args())
	if err != nil {
		_, _ = fmt.Fprintln(stderr, "behave:", err)
	}
	return b, err
}

// validate returns an error that names the invalid flag and its accepted values.
func (b behaviour) validate(args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q: there are only flags, see --help", args[0])
	}
	if b.exitCode < 0 || b.exitCode > 255 {
		return fmt.Errorf("--exit-code is %d: give 0 to 255", b.exitCode)
	}
	if b.ignoreSIGTERM && b.sleepOnSIGTERM > 0 {
		return errors.New("--ignore-sigterm and --sleep-on-sigterm exclude each other: give one")
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{
		{flag: "ready-after", value: b.readyAfter},
		{flag: "unhealthy-after", value: b.unhealthyAfter},
		{flag: "exit-after", value: b.exitAfter},
		{flag: "allocate-after", value: b.allocateAfter},
		{flag: "sleep-on-sigterm", value: b.sleepOnSIGTERM},
	} {
		if d.value < 0 {
			return fmt.Errorf("--%s is %s: give a duration of 0s or more", d.flag, d.value)
		}
	}
	return nil
}
