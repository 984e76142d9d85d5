package main

import (
	"strings"
	"testing"
)

func TestTable(t *testing.T) {
	const values = `
# The image.
image: "a|b"

crds:
  # Installs
  # the CRD.
  install: true

# Requests.
resources:
  requests: {cpu: 50m}
`
	const want = "| `image` | `\"a|b\"` | The image. |\n" +
		"| `crds.install` | `true` | Installs the CRD. |\n" +
		"| `resources` | `{\"requests\":{\"cpu\":\"50m\"}}` | Requests. |\n"
	got, err := table([]byte(values))
	if err != nil {
		t.Fatalf("table: %v", err)
	}
	if got != want {
		t.Errorf("the rows are\n%s, want\n%s", got, want)
	}
}

func TestTable_RejectsValueWithoutComment(t *testing.T) {
	_, err := table([]byte("# A group.\na: 1\nb:\n  c: true\n"))
	if err == nil || !strings.Contains(err.Error(), "b.c has no comment") {
		t.Errorf("the error is %v, want one that names b.c", err)
	}
}
