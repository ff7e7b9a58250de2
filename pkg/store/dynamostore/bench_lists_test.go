//go:build aws

package dynamostore_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore"
)

// BenchmarkFleet prints what pages of lists and moves of a status cost in a table
// with 2,000 tenants and a huge one, as BenchmarkMoves does.
func BenchmarkFleet(b *testing.B) {
	c, m := metered(b)
	loadFleet(b, m)
	for _, l := range listings() {
		b.Run(l.name, func(b *testing.B) {
			p := l.before(b, c.store)
			var sum usage
			b.ResetTimer()
			for range b.N {
				sum.add(m.measure(func() {
					page, err := c.store.Find(b.Context(), p)
					require.NoError(b, err)
					require.Len(b, page.Found, l.rows)
				}))
			}
			sum.report(b, 0)
		})
	}
	for _, mv := range moves(b.TempDir()) {
		switch mv.name {
		case "start", "suspend", "answer", "resume", "finish":
		default:
			continue // no status moves
		}
		b.Run(mv.name, func(b *testing.B) {
			var sum usage
			sends := int64(0)
			b.ResetTimer()
			for i := range b.N {
				c.key = session.Key{Tenant: "acme", ID: fmt.Sprintf("%s-%d-%d", mv.name, b.N, i)}
				do := mv.do
				if do == nil {
					do = func(c *chain) { c.start(mv.script) }
				} else {
					c.start(mv.script)
					mv.before(c)
				}
				c.now.Add(int64(time.Second))
				sent := c.queue.sends.Load()
				sum.add(m.measure(func() { do(c) }))
				sends += c.queue.sends.Load() - sent
				c.settleAll()
			}
			sum.report(b, sends)
		})
	}
}

// loadFleet writes the items of a fleet as they are, 25 in a request.
func loadFleet(b *testing.B, m *meter) {
	b.Helper()
	api := m.API.(*dynamodb.Client)
	var batch []types.WriteRequest
	var all sync.WaitGroup
	turns := make(chan struct{}, 4)
	send := func() {
		if len(batch) == 0 {
			return
		}
		asked := map[string][]types.WriteRequest{m.table: batch}
		batch = nil
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			for len(asked) > 0 {
				out, err := api.BatchWriteItem(b.Context(), &dynamodb.BatchWriteItemInput{RequestItems: asked})
				if err != nil {
					b.Error(err)
					return
				}
				asked = out.UnprocessedItems
			}
		})
	}
	fleet(func(key session.Key, of store.Item) {
		stored, err := dynamostore.Stored(key, of)
		require.NoError(b, err)
		batch = append(batch, types.WriteRequest{PutRequest: &types.PutRequest{Item: stored}})
		if len(batch) == 25 {
			send()
		}
	})
	send()
	all.Wait()
}
