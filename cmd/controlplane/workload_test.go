package main

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/threeport/threeport-agent/internal/server/store"
	"github.com/threeport/threeport-agent/internal/threeport"
)

func TestRunWorkload(t *testing.T) {
	address := "sqlite:" + filepath.Join(t.TempDir(), "rows.db")
	s, err := store.Open(t.Context(), store.Config{Address: address})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // its file is in the test's folder
	row, _, err := s.Create(t.Context(), store.Resources[1], []any{"chart", nil, nil})
	if err != nil {
		t.Fatal(err)
	}
	id := fmt.Sprint(row.ID)
	for _, tc := range []struct {
		args    string
		code    int
		says    string
		cluster string // of the instance afterwards
	}{
		{args: "assign --cluster c HelmWorkloadInstance ID", says: "is c; before: none.\n", cluster: "c"},
		{args: "assign --cluster c HelmWorkloadInstance ID", says: "is c; before: c.\n", cluster: "c"},
		{args: "assign --cluster=other HelmWorkloadInstance ID", says: "is other; before: c.\n", cluster: "other"},
		{args: "release HelmWorkloadInstance ID", says: "is none; before: other.\n"},
		{args: "assign --cluster c WorkloadInstance ID", code: exitFailed, says: "there is no WorkloadInstance " + id},
		{args: "assign HelmWorkloadInstance ID", code: exitUsage, says: "--cluster: must be the UID"},
		{args: "assign --cluster c HelmWorkloadInstance", code: exitUsage, says: "use TYPE and ID"},
		{args: "assign --cluster c WorkloadEvent ID", code: exitUsage, says: `"WorkloadEvent" is not a type: use WorkloadInstance or HelmWorkloadInstance`},
		{args: "assign --cluster c HelmWorkloadInstance x", code: exitUsage, says: `"x" is not an ID`},
		{args: "release --cluster c HelmWorkloadInstance ID", code: exitUsage, says: "flag provided but not defined"},
		{args: "move", code: exitUsage, says: "use assign or release"},
		{args: "help", says: "usage: controlplane workload assign --cluster UID TYPE ID"},
	} {
		args := append([]string{"workload", "--database", address}, strings.Fields(strings.ReplaceAll(tc.args, "ID", id))...)
		args = slices.DeleteFunc(args, func(arg string) bool { return arg == "" })
		var stdout, stderr bytes.Buffer
		if code := run(t.Context(), args, &stdout, &stderr); code != tc.code || !strings.Contains(stdout.String()+stderr.String(), tc.says) {
			t.Errorf("%s: exit code %d, %s%s, want %d and %q", tc.args, code, stdout.String(), stderr.String(), tc.code, tc.says)
		}
		if cluster, err := s.InstanceCluster(t.Context(), threeport.TypeHelmWorkloadInstance, row.ID); cluster != tc.cluster || err != nil {
			t.Errorf("%s: the cluster is %q, %v, want %q", tc.args, cluster, err, tc.cluster)
		}
	}
	records, err := s.AuditRecords(t.Context(), "", 100)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range slices.Backward(records.Items) {
		got = append(got, fmt.Sprint(r.Principal, " ", r.Method, " ", r.Path, " ", r.Object.Name))
	}
	path := " /v0/workloads/HelmWorkloadInstance/" + id + "/cluster "
	want := []string{
		"command:controlplane PUT" + path + "c", "command:controlplane PUT" + path + "c",
		"command:controlplane PUT" + path + "other", "command:controlplane DELETE" + path + "other",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the audit log is %q, want %q", got, want)
	}
}
