package attacks

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/threeport/threeport-agent/internal/e2e/process"
)

var (
	measure    = flag.Duration("measure", 0, "`duration` for which the latency of honest agents is measured, without and with the attack")
	asAttacker = flag.Bool("attacker", false, "be the attackers that standard input describes until it ends; -measure starts such a process")
)

// attackers describes a process of attackers.
type attackers struct {
	URL                  string // empty for a server of their own, see floor
	CA                   []byte
	Clients              int
	Bearer, Method, Path string
	Body                 body
}

// run repeats the request until standard input ends, and prints the number of answers by code.
func (a attackers) run(ctx context.Context) error {
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(a.CA)
	if a.URL == "" {
		own := floor()
		defer own.Close()
		a.URL = own.URL
		trusted.AddCert(own.Certificate())
	}
	to := api{url: a.URL, client: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, MaxIdleConnsPerHost: 100}}}
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	var mu sync.Mutex
	answers := map[int]int{}
	for range a.Clients {
		all.Go(func() {
			for ctx.Err() == nil {
				code, _, _ := to.request(ctx, a.Bearer, a.Method, a.Path, a.Body.reader())
				mu.Lock()
				answers[code]++
				mu.Unlock()
			}
		})
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	cancel()
	all.Wait()
	fmt.Println(answers)
	return err
}

// floor is a server that refuses each request without reading its body. An attack on it shows how much an honest agent is delayed
// because the attackers run on the same machine.
func floor() *httptest.Server {
	return httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
}

// runAttackers is the main function of a process of attackers.
func runAttackers() error {
	var a attackers
	if err := json.NewDecoder(os.Stdin).Decode(&a); err != nil {
		return err
	}
	return a.run(context.Background())
}

// compareLatency logs the latency of honest agents without an attack, with one on the floor, and with one on the API.
func (a *api) compareLatency(clients int, try attempt) {
	a.Helper()
	quiet := a.latency(*measure)
	by := attackers{"", a.ca, clients, try.bearer, try.method, try.path, try.body}
	floor, _ := a.latencyDuring(by)
	by.URL = a.url
	before, err := process.CPUTime(a.process.PID())
	a.must(err)
	attacked, answers := a.latencyDuring(by)
	after, err := process.CPUTime(a.process.PID())
	a.must(err)
	a.Logf("%s: the 99th percentile of an honest agent's reports: %s, %s during the attack on the floor, and %s during that on the API. "+
		"The API used %.2f cores. Answers by code: %s", try.reason, quiet, floor, attacked, (after-before).Seconds()/measure.Seconds(), answers)
}

// latencyDuring is the latency during an attack, and the answers of the latter by code. The attackers are a process of the lowest
// priority, so that they take only the processors that the API and the honest agent leave, as attackers on other machines would.
func (a *api) latencyDuring(attack attackers) (time.Duration, string) {
	a.Helper()
	self, err := os.Executable()
	a.must(err)
	command := exec.CommandContext(a.Context(), "chrt", "--idle", "0", self, "-attacker")
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	a.must(err)
	output, err := command.StdoutPipe()
	a.must(err)
	a.must(command.Start())
	a.must(json.NewEncoder(input).Encode(attack))
	latency := a.latency(*measure)
	a.must(input.Close())
	answers, err := io.ReadAll(output)
	a.must(err)
	a.must(command.Wait())
	return latency, string(answers)
}

// latency is the 99th percentile of the time of an honest agent's reports, 50 a second.
func (a *api) latency(during time.Duration) time.Duration {
	a.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var took []time.Duration
	for end := time.Now().Add(during); time.Now().Before(end); <-tick.C {
		begin := time.Now()
		if err := a.report(a.Context(), fmt.Sprintf("honest-%d", begin.UnixNano())); err != nil {
			a.Errorf("a report of an honest agent: %v", err)
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	a.Logf("%d reports: median %s, maximum %s", len(took), took[len(took)/2], took[len(took)-1])
	return took[len(took)*99/100]
}
