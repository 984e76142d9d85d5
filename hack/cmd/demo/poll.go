package main

import (
	"context"
	"fmt"
	"time"
)

// poll repeats a check until it succeeds, fails permanently, or the context ends.
func poll(ctx context.Context, check func(context.Context) (again bool, err error)) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		again, err := check(ctx)
		if err == nil || !again {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; at last: %w", context.Cause(ctx), err)
		case <-ticker.C:
		}
	}
}
