package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// postsCommand runs the floor of delivery: a loop that posts Events one after another, and nothing else.
const postsCommand = "posts"

// postedText is printed with the time that all posts took.
const postedText = "all Events were posted in "

func runPosts(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet(postsCommand, flag.ExitOnError)
	url := flags.String("url", "", "URL of the control-plane API")
	instance := flags.Int64("instance", 0, "ID of a WorkloadInstance")
	events := flags.Int("events", 0, "number of Events")
	_ = flags.Parse(args) // it exits on an error
	begin := time.Now()
	for i := range *events {
		body := fmt.Sprintf(`{"RuntimeEventUID":"floor-%d","Type":"Normal","Reason":"Pulled","Message":"Pod web-78874481-x: Container image \"registry.example/app:1\" `+
			`already present on machine","Timestamp":%q,"WorkloadInstanceID":%d}`, i, begin.Format(time.RFC3339), *instance)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, *url+"/v0/workload-events", bytes.NewReader([]byte(body)))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, answer.Body)
		_ = answer.Body.Close() // it was only read
		if err != nil {
			return err
		}
		if answer.StatusCode != http.StatusCreated {
			return fmt.Errorf("the answer is %s", answer.Status)
		}
	}
	fmt.Fprintln(os.Stderr, postedText+time.Since(begin).String())
	<-ctx.Done() // the parent reads the CPU time
	return nil
}
