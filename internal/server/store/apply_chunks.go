package store

import (
	"context"
	"fmt"
)

// Bounds of a transaction that applies reports, so that it takes little memory and does not block other writers for long. 250 new Events
// take about 12 ms. The bytes are those of the reports and of the rows that they change. A tree without objects marks all stored ones
// as gone. An operation moves the stored definition.
//
// A tree with more changes than nodesPerTx is written by several transactions.
const (
	reportsPerTx = 250
	bytesPerTx   = 8 << 20
	nodesPerTx   = 1000
)

// maxLargeChunks is how many chunks are applied at once that have a tree of largeTree objects with the stored ones, or as many bytes. All of
// them are in memory until the last transaction of the tree. A cluster that lost a large workload sends a small set.
const (
	maxLargeChunks = 2
	largeTree      = 4 * nodesPerTx
)

// nodeBytes is what an object of a tree costs: it is read, compared and written. containerBytes is what a container of a Pod costs in
// addition.
const (
	nodeBytes      = bytesPerTx / nodesPerTx
	containerBytes = 512
)

// chunk has items for one transaction, or for several if it is one large tree.
type chunk struct {
	items []*item
	large bool // it takes much memory
}

// chunksOf splits items into chunks, in their order. An item that exceeds the bounds is alone.
func (s *Store) chunksOf(ctx context.Context, clusterUID string, items []*item) ([]chunk, error) {
	stored, err := s.storedCosts(ctx, clusterUID, items)
	if err != nil {
		return nil, err
	}
	var chunks []chunk
	begin, bytes := 0, int64(0)
	end := func(n int) {
		chunks = append(chunks, chunk{items[begin:n], bytes >= largeTree*nodeBytes})
		begin, bytes = n, 0
	}
	for n, one := range items {
		cost := one.cost() + stored[n]
		if n > begin && (n-begin == reportsPerTx || bytes+cost > bytesPerTx) {
			end(n)
		}
		bytes += cost
	}
	end(len(items))
	return chunks, nil
}

// applyChunk applies a chunk. A large one waits for others.
func (s *Store) applyChunk(ctx context.Context, agent *reportingAgent, c chunk) error {
	if c.large {
		select {
		case s.largeChunks <- struct{}{}:
			defer func() { <-s.largeChunks }()
		case <-ctx.Done():
			return fmt.Errorf("wait for other large trees: %w", ctx.Err())
		}
	}
	return s.applyItems(ctx, agent, c.items)
}

// cost is what an item itself costs, in bytes.
func (i *item) cost() int64 {
	switch {
	case i.Tree != nil:
		bytes := nodeBytes * int64(len(i.Tree.Objects))
		for n := range i.Tree.Objects {
			if pod := i.Tree.Objects[n].Pod; pod != nil {
				bytes += containerBytes * int64(len(pod.Containers))
			}
		}
		return bytes
	case i.Operation != nil:
		return int64(len(i.definition))
	case i.Event != nil:
		return int64(len(i.Event.Message))
	}
	return 0
}

// storedCosts returns what the stored rows of each item cost, in bytes. Those of a single operation are not read: it cannot be split.
func (s *Store) storedCosts(ctx context.Context, clusterUID string, items []*item) ([]int64, error) {
	costs := make([]int64, len(items))
	var trees, operations []int
	counted := map[instanceKey]bool{}
	for n, one := range items {
		switch {
		case one.Tree != nil && !counted[one.instance]: // of several trees, one is applied
			counted[one.instance] = true
			trees = append(trees, n)
		case one.Operation != nil:
			operations = append(operations, n)
		}
	}
	if err := s.treeCosts(ctx, items, trees, costs); err != nil {
		return nil, fmt.Errorf("count stored objects: %w", err)
	}
	if err := s.definitionCosts(ctx, clusterUID, items, operations, costs); err != nil {
		return nil, fmt.Errorf("measure stored definitions: %w", err)
	}
	return costs, nil
}

// treeCosts sets the costs of the stored trees of items at places. Objects that are gone count too: the primary key is enough then.
// Objects beyond those of a large tree are not counted.
func (s *Store) treeCosts(ctx context.Context, items []*item, places []int, costs []int64) error {
	return s.readBulk(ctx, s.reserved, bulk{
		"SELECT x.place, (SELECT COUNT(*) FROM (SELECT 1 FROM objects o WHERE o.type = x.type AND o.id = x.id LIMIT ?) AS found) FROM x",
		[]column{
			integers("place", places, func(n int) int64 { return int64(n) }),
			texts("type", places, func(n int) string { return items[n].instance.kind }),
			integers("id", places, func(n int) int64 { return items[n].instance.id }),
		},
		len(places),
		[]any{largeTree},
	}, func(scan scanner) error {
		var place, objects int64
		if err := scan(&place, &objects); err != nil {
			return err
		}
		costs[place] = nodeBytes * objects
		return nil
	})
}

// definitionCosts sets the costs of the stored definitions of items at places.
func (s *Store) definitionCosts(ctx context.Context, clusterUID string, items []*item, places []int, costs []int64) error {
	if len(places) < 2 {
		return nil
	}
	return s.readBulk(ctx, s.reserved, bulk{
		"SELECT x.place, COALESCE(octet_length(d.current), 0) + COALESCE(octet_length(d.previous), 0) " +
			"FROM x CROSS JOIN definitions d WHERE d.clusteruid = ? AND d.uid = x.uid",
		[]column{
			integers("place", places, func(n int) int64 { return int64(n) }),
			texts("uid", places, func(n int) string { return items[n].Operation.Object.UID }),
		},
		len(places),
		[]any{clusterUID},
	}, func(scan scanner) error {
		var place, bytes int64
		if err := scan(&place, &bytes); err != nil {
			return err
		}
		costs[place] = bytes
		return nil
	})
}
