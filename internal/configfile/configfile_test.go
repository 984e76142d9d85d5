package configfile

import (
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"
)

type program struct {
	flags    *flag.FlagSet
	server   string
	senders  int
	interval time.Duration
	leader   bool
	names    string
}

var format = Format{APIVersion: "agent.example.com/v1", Kind: "AgentConfig", FlagsOnly: []string{"config"}}

func newProgram(t *testing.T, args ...string) *program {
	t.Helper()
	p := &program{flags: flag.NewFlagSet("program", flag.ContinueOnError)}
	p.flags.StringVar(&p.server, "server", "", "address of the server")
	p.flags.IntVar(&p.senders, "senders", 8, "number of senders")
	p.flags.DurationVar(&p.interval, "interval", 10*time.Minute, "time between two rounds;\n0 for none")
	p.flags.BoolVar(&p.leader, "leader", true, "elect a leader")
	p.flags.StringVar(&p.names, "names", "", "names")
	p.flags.String("config", "", "the file")
	if err := p.flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return p
}

const header = "apiVersion: agent.example.com/v1\nkind: AgentConfig\n"

func TestFormat_Apply_CommandLineHasPrecedence(t *testing.T) {
	p := newProgram(t, "--senders=4")
	settings, err := format.Apply("c.yaml", []byte(header+"senders: 16\nserver: api:443\ninterval: 5m\nleader: false\nnames: [a, b]\n"), p.flags)
	if err != nil || p.senders != 4 || p.server != "api:443" || p.interval != 5*time.Minute || p.leader || p.names != "a,b" {
		t.Errorf("got %+v, %v", p, err)
	}
	if settings["server"] != (Setting{"api:443", 4}) || settings["names"] != (Setting{"a,b", 7}) || len(settings) != 4 {
		t.Errorf("the settings are %v", settings)
	}
}

func TestFormat_Apply_MistakesHaveTheirLines(t *testing.T) {
	const settings = "\nthe settings are interval, leader, names, senders, server"
	for _, tt := range []struct {
		text string
		want []string // the lines of the error before the settings
	}{
		{"", []string{"c.yaml:1: apiVersion is missing: give agent.example.com/v1", "c.yaml:1: kind is missing: give AgentConfig"}},
		{"# nothing\n", []string{"c.yaml:1: apiVersion is missing: give agent.example.com/v1", "c.yaml:1: kind is missing: give AgentConfig"}},
		{"apiVersion: agent.example.com/v2\nkind: AgentConfig", []string{`c.yaml:1: apiVersion is "agent.example.com/v2": give agent.example.com/v1`}},
		{header + "sender: 16\nserver: x\nconfig: y\n<<: {}\n[a]: b", []string{
			`c.yaml:3: there is no setting "sender"`, `c.yaml:5: there is no setting "config"`, `c.yaml:6: there is no setting "<<"`,
			`c.yaml:7: there is no setting ""`,
		}},
		{header + "senders: many\ninterval: 5 minutes\nleader: perhaps", []string{
			`c.yaml:3: senders is "many": parse error`, `c.yaml:4: interval is "5 minutes": parse error`, `c.yaml:5: leader is "perhaps": parse error`,
		}},
		{header + "senders: 1\nserver: x\nsenders: 2", []string{"c.yaml:5: senders is also in line 3"}},
		{header + "server:\nnames: {a: b}", []string{"c.yaml:3: server: the value is missing", "c.yaml:4: names: give one value, or a list of values"}},
		{header + "names: [[a]]", []string{"c.yaml:3: names: give one value, or a list of values"}},
		{header + "names: &a [b]\nserver: *a\nsenders: *a", []string{`c.yaml:5: senders is "b": parse error`}},
	} {
		_, err := format.Apply("c.yaml", []byte(tt.text), newProgram(t).flags)
		if got, want := fmt.Sprint(err), strings.Join(tt.want, "\n")+settings; got != want {
			t.Errorf("%q: the error is\n%s\nwant\n%s", tt.text, got, want)
		}
	}
	for text, want := range map[string]string{
		"[a]":                     "c.yaml:1: this is no list of settings: give lines NAME: VALUE",
		"a: [":                    "c.yaml: line 1: did not find expected node content",
		header + "---\nserver: x": "c.yaml:3: the file has more than one document: give one",
	} {
		if _, err := format.Apply("c.yaml", []byte(text), newProgram(t).flags); fmt.Sprint(err) != want {
			t.Errorf("%q: the error is\n%v\nwant\n%s", text, err, want)
		}
	}
}

// The error of a large file is short, so that it fits a line of the log, and it takes no time.
func TestFormat_Apply_ManyMistakes_AreCut(t *testing.T) {
	unknown, alias := strings.Builder{}, strings.Builder{}
	alias.WriteString("names: &a [" + strings.Repeat("b,", maxBytes/4) + "b]\n")
	for i := 0; unknown.Len() < maxBytes-len(header)-100; i++ {
		fmt.Fprintf(&unknown, "unknown-%d: 1\n", i)
	}
	for alias.Len() < maxBytes-len(header)-100 {
		alias.WriteString("names: *a\n")
	}
	for name, text := range map[string]string{
		"unknown settings": unknown.String(), "aliases": alias.String(), "a long name": strings.Repeat("x", maxBytes-len(header)-10) + ": 1",
		"a long value": "senders: " + strings.Repeat("x", maxBytes-len(header)-10), "too long": strings.Repeat("#", maxBytes),
	} {
		_, err := format.Apply("c.yaml", []byte(header+text), newProgram(t).flags)
		if err == nil || len(err.Error()) > 4096 {
			t.Errorf("%s: the error has %d bytes: %.200v", name, len(fmt.Sprint(err)), err)
		}
	}
}

// The printed file is valid, and changes nothing until a line is uncommented.
func TestFormat_Print_IsAFile(t *testing.T) {
	p := newProgram(t)
	var out strings.Builder
	if err := format.Print(&out, p.flags); err != nil {
		t.Fatal(err)
	}
	const want = header + `
# time between two rounds;
# 0 for none
# interval: 10m0s

# elect a leader
# leader: true

# names
# names: ""

# number of senders
# senders: 8

# address of the server
# server: ""
`
	if out.String() != want {
		t.Errorf("printed is\n%s\nwant\n%s", out.String(), want)
	}
	if settings, err := format.Apply("c.yaml", []byte(out.String()), p.flags); err != nil || len(settings) > 0 {
		t.Errorf("it sets %v: %v", settings, err)
	}
}
