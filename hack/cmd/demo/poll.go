package main

import (
	"context"
	"fmt"
	"time"
)

// poll checks until there is no error, or one that another try does not mend, or the context ends.
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
