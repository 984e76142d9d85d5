package attacks

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"

	"github.com/threeport/threeport-agent/internal/e2e/process"
	"github.com/threeport/threeport-agent/internal/server/auth"
	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/testing/certs"
	"github.com/threeport/threeport-agent/internal/testing/databases"
	"github.com/threeport/threeport-agent/internal/threeport"
)

var givenBinary = flag.String("binary", "", "`path` of the control-plane API to attack, rather than that of this checkout")

// root is the path of the module's root from this package.
var root = filepath.Join("..", "..", "..")

// binary is the control-plane API.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	if *asAttacker {
		if err := runAttackers(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(run(m))
}

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "threeport-attacks-")
	if err == nil {
		defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
		binary, err = *givenBinary, nil
		if binary == "" {
			binary, err = process.Build(context.Background(), root, "./cmd/controlplane", dir)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return databases.Main(m).Run()
}

// onDatabases runs an attack on the memory of the API, on each database. With -short it uses SQLite only: the code that holds the
// memory is the same on both.
func onDatabases(t *testing.T, attack func(t *testing.T, address string)) {
	t.Helper()
	if testing.Short() {
		databases.OnSQLite(t, attack)
		return
	}
	databases.ForEach(t, attack)
}

// maxResident bounds the resident memory of the API under each attack, in bytes. The limit in config/controlplane is 512 MiB.
const maxResident = 300 << 20

const (
	ownCluster     = "own"     // of the agent that attacks
	foreignCluster = "foreign" // of the workload that it attacks
	honestCluster  = "honest"
)

// api is a control-plane API under attack.
type api struct {
	*testing.T
	address string // of the database
	url     string
	ca      []byte // PEM
	client  *http.Client
	process *process.Process

	viewer, otherViewer, agent, honest, admin string // credentials

	own, foreign, honestly workload
}

// workload has the IDs of the rows of a workload of one cluster.
type workload struct{ instance, resource int64 }

// newAPI prepares a database with a workload of each cluster. The caller may add rows before start.
func newAPI(t *testing.T, address string) *api {
	t.Helper()
	a := &api{T: t, address: address}
	s, err := store.Open(t.Context(), store.Config{Address: address})
	a.must(err)
	defer func() { a.must(s.Close()) }()
	a.viewer, a.otherViewer, a.admin = a.token(s, "viewer", "viewer", ""), a.token(s, "viewer", "other", ""), a.token(s, "admin", "admin", "")
	a.agent, a.honest = a.token(s, "agent", ownCluster, ownCluster), a.token(s, "agent", honestCluster, honestCluster)
	a.own, a.foreign, a.honestly = a.workload(s, ownCluster), a.workload(s, foreignCluster), a.workload(s, honestCluster)
	return a
}

// token creates a credential.
func (a *api) token(s *store.Store, role, name, cluster string) string {
	a.Helper()
	var secret, said bytes.Buffer
	args := []string{"create", "--role", role, "--name", name, "--cluster", cluster}
	if code := auth.RunTokenCommand(a.Context(), args, s, &secret, &said); code != 0 {
		a.Fatal(said.String())
	}
	return "Bearer " + strings.TrimSpace(secret.String())
}

// register creates an instance that belongs to no cluster, and a resource of it.
func (a *api) register(s *store.Store, name string) (w workload) {
	a.Helper()
	create := func(object string, values ...any) int64 {
		for _, r := range store.Resources {
			if r.Object == object {
				row, _, err := s.Create(a.Context(), r, values)
				a.must(err)
				return row.ID
			}
		}
		a.Fatal("no object " + object)
		return 0
	}
	w.instance = create(threeport.TypeWorkloadInstance, name, nil, nil)
	w.resource = create("WorkloadResourceInstance", `{"kind":"Confidential"}`, w.instance, nil, nil, nil, nil)
	return w
}

// workload creates an instance that belongs to a cluster, and a resource of it.
func (a *api) workload(s *store.Store, cluster string) workload {
	a.Helper()
	w := a.register(s, cluster)
	_, err := s.Apply(a.Context(), threeport.ReportSet{
		Agent: threeport.Agent{ClusterUID: cluster, Time: time.Now()},
		Reports: []threeport.Report{{
			Instance: threeport.Instance{Type: threeport.TypeWorkloadInstance, ID: threeport.ID(w.instance)},
			Version:  1, Status: &threeport.StatusReport{Status: "Healthy"},
		}},
	})
	a.must(err)
	return w
}

// statuses adds workloads of the attacking agent, before start. It returns a set with a status of each.
func (a *api) statuses(workloads int, status threeport.StatusReport) threeport.ReportSet {
	a.Helper()
	s, err := store.Open(a.Context(), store.Config{Address: a.address})
	a.must(err)
	defer func() { a.must(s.Close()) }()
	set := threeport.ReportSet{Agent: threeport.Agent{ClusterUID: ownCluster, Time: time.Now()}}
	for range workloads {
		of := status
		set.Reports = append(set.Reports, threeport.Report{
			Instance: threeport.Instance{Type: threeport.TypeWorkloadInstance, ID: threeport.ID(a.workload(s, ownCluster).instance)},
			Status:   &of,
		})
	}
	return set
}

func (a *api) must(err error) {
	a.Helper()
	if err != nil {
		a.Fatal(err)
	}
}

// database opens the database, also beside the API.
func (a *api) database() *sql.DB {
	a.Helper()
	driver, source := "pgx", a.address
	if file, isFile := strings.CutPrefix(a.address, "sqlite:"); isFile {
		driver, source = "sqlite", "file:"+url.PathEscape(file)+"?_pragma=busy_timeout(60000)"
	}
	db, err := sql.Open(driver, source)
	a.must(err)
	return db
}

// exec runs a statement on the database.
func (a *api) exec(statement string) {
	a.Helper()
	db := a.database()
	defer db.Close() //nolint:errcheck // the statement's error is enough
	_, err := db.ExecContext(a.Context(), statement)
	a.must(err)
}

// number reads a number from the database.
func (a *api) number(query string) (n int64) {
	a.Helper()
	db := a.database()
	defer db.Close() //nolint:errcheck // only read
	a.must(db.QueryRowContext(a.Context(), query).Scan(&n))
	return n
}

// start starts the API with the environment and the flags of config/controlplane, and further flags.
func (a *api) start(flags ...string) {
	a.Helper()
	text, err := os.ReadFile(filepath.Join(root, "config", "controlplane", "deployment.yaml"))
	a.must(err)
	var deployment appsv1.Deployment
	a.must(yaml.UnmarshalStrict(text, &deployment))
	container := deployment.Spec.Template.Spec.Containers[0]
	var env []string
	for _, variable := range container.Env {
		env = append(env, variable.Name+"="+variable.Value)
	}
	ca := certs.ForTest(a)
	files := ca.IssueFiles("server")
	args := append(container.Args, "--bind-address=127.0.0.1:0", "--cert-file="+files.Cert, "--key-file="+files.Key, "--ca-file="+files.CA) //nolint:gocritic // the last of a flag counts
	a.process, err = process.Start(binary, append(env, "CONTROLPLANE_DATABASE="+a.address), append(args, flags...))
	a.must(err)
	a.Cleanup(func() {
		if err := a.process.Stop(20 * time.Second); err != nil {
			a.Error(err)
		}
	})
	ctx, cancel := context.WithTimeout(a.Context(), time.Minute)
	defer cancel()
	a.url, err = a.process.URL(ctx)
	a.must(err)
	a.ca = ca.PEM()
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(a.ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, MaxIdleConnsPerHost: 100}
	a.client = &http.Client{Transport: transport}
	a.Cleanup(transport.CloseIdleConnections)
}

// request sends a request and reads the answer. The code is 0 if the server cut it off.
func (a *api) request(ctx context.Context, bearer, method, path string, body io.Reader) (code int, size int64, err error) {
	req, err := http.NewRequestWithContext(ctx, method, a.url+path, body)
	if err != nil {
		return 0, 0, err
	}
	req.Header.Set("Authorization", bearer)
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.client.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	size, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, size, err
}

// report sends a report set with one Event of the honest agent.
func (a *api) report(ctx context.Context, uid string) error {
	now := time.Now()
	set, err := json.Marshal(threeport.ReportSet{
		Agent: threeport.Agent{ClusterUID: honestCluster, Time: now},
		Reports: []threeport.Report{{
			Instance: threeport.Instance{Type: threeport.TypeWorkloadInstance, ID: threeport.ID(a.honestly.instance)},
			Version:  threeport.ID(now.UnixMicro()),
			Event:    &threeport.EventReport{UID: uid, Type: "Normal", Reason: "Created", Message: "created a container", Time: now},
		}},
	})
	if err != nil {
		return err
	}
	code, _, err := a.request(ctx, a.honest, http.MethodPost, "/v0/workload-report-sets", bytes.NewReader(set))
	if err == nil && code != http.StatusOK {
		err = fmt.Errorf("the answer is %d", code)
	}
	return err
}

// expectAlive checks that the API serves, and that its resident memory never exceeded the bound.
func (a *api) expectAlive() {
	a.Helper()
	if err := a.report(a.Context(), "after"); err != nil {
		a.Errorf("a report after the attack: %v\n%s", err, a.process.Output())
	}
	peak, err := process.PeakResidentBytes(a.process.PID())
	a.must(err)
	a.Logf("the resident memory was at most %d MiB", peak>>20)
	if peak >= maxResident {
		a.Errorf("the resident memory was %d MiB, want less than %d", peak>>20, maxResident>>20)
	}
}
