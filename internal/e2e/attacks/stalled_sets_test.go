package attacks

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/testing/databases"
)

// pause is a reader without data that blocks until resume is closed. It closes reached at the first read.
type pause struct {
	once            sync.Once
	reached, resume chan struct{}
}

func (p *pause) Read([]byte) (int, error) {
	p.once.Do(func() { close(p.reached) })
	<-p.resume
	return 0, io.EOF
}

// Agents of two clusters send many large report sets, and hold back the end of each. Reports of a third cluster are still received.
func TestStalledSets_OtherClustersReport(t *testing.T) {
	databases.ForEach(t, func(t *testing.T, address string) {
		t.Helper()
		a := newAPI(t, address)
		s, err := store.Open(t.Context(), store.Config{Address: address})
		a.must(err)
		second := a.token(s, "agent", foreignCluster, foreignCluster)
		a.must(s.Close())
		a.start()

		const sets, size = 8, 8<<20 - 100
		resume := make(chan struct{})
		var requests sync.WaitGroup
		var sent sync.WaitGroup
		for _, bearer := range []string{a.agent, second} {
			for range sets {
				end := &pause{reached: make(chan struct{}), resume: resume}
				body := io.MultiReader(text(`{"agent":"`, "x", "", size), end)
				ended := make(chan struct{})
				requests.Go(func() {
					defer close(ended)
					_, _, _ = a.request(t.Context(), bearer, http.MethodPost, "/v0/workload-report-sets", body) // any answer will do
				})
				sent.Go(func() {
					select {
					case <-end.reached:
					case <-ended:
					}
				})
			}
		}
		sent.Wait()
		for i := range 10 {
			if err := a.report(t.Context(), fmt.Sprint("during-", i)); err != nil {
				t.Errorf("report %d of another cluster during the attack: %v", i, err)
				break
			}
		}
		close(resume)
		requests.Wait()
		a.expectAlive()
	})
}
