package store

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/threeport/threeport-agent/internal/testing/databases"
)

func TestMain(m *testing.M) {
	if where := os.Getenv(applierVariable); where != "" {
		fmt.Fprintln(os.Stderr, applyUntilKilled(where))
		os.Exit(1)
	}
	goleak.VerifyTestMain(databases.Main(m))
}
