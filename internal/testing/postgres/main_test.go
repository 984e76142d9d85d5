package postgres

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// helperEnv makes the test binary a process that starts a server, prints its directory and PID, and waits to be killed.
const helperEnv = "THREEPORT_POSTGRES_TEST_HELPER"

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		if err := helper(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

func helper() error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server, err := Start(ctx, Options{NoSync: true})
	if err != nil {
		return err
	}
	fmt.Println(server.dir, server.process.pid)
	<-ctx.Done() // the test kills this process before
	return server.Stop()
}
