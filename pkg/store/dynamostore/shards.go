package dynamostore

import (
	"crypto/sha256"
	"fmt"
	"strconv"

	"github.com/adjourn/adjourn/pkg/session"
)

// An index is spread over shards: DynamoDB takes 1,000 writes a second of one partition key,
// however large the table is. Writers choose a shard by a digest; readers read all shards at once
// and merge the results. The numbers are constants on purpose: docs/design/sharded-lists.md gives
// the reasons for them, and says how to raise tenantShards. It must never be lowered: items in a
// shard that is not read are in no list.
const (
	// tenantShards is over how many partitions the sessions, and the open waits, of
	// one tenant are spread.
	tenantShards = 8
	// dueShards is over how many partitions what is due is spread, of all tenants.
	dueShards = 16
)

// shardOf returns the shard of a text: the first byte of its SHA-256 modulo the number
// of shards, which is a power of two up to 256.
func shardOf(text string, shards int) int {
	sum := sha256.Sum256([]byte(text))
	return int(sum[0]) % shards
}

// tenantShard names a shard of a tenant. The first one is the tenant itself: it was
// the only one once, and what was written then is found there. No tenant has a #.
func tenantShard(tenant string, n int) string {
	if n == 0 {
		return tenant
	}
	return tenant + "#" + strconv.Itoa(n)
}

// shardOfSession names the shard of its tenant in which a session and its waits are listed.
func shardOfSession(key session.Key) string {
	return tenantShard(key.Tenant, shardOf(key.ID, tenantShards))
}

// longValue is the length from which an agent's or tool's name is replaced by its
// digest in a key: DynamoDB takes 2 KB of partition key.
const longValue = 512

// valueShard names a shard of what a tenant has of one agent, kind or tool.
func valueShard(tenant string, n int, value string) string {
	if len(value) >= longValue {
		value = "#" + contentHash([]byte(value))
	}
	return tenant + "#" + strconv.Itoa(n) + "#" + value
}

// tenantShardNames are all shards of a tenant.
func tenantShardNames(tenant string) []string {
	names := make([]string, tenantShards)
	for n := range names {
		names[n] = tenantShard(tenant, n)
	}
	return names
}

// valueShardNames are all shards of what a tenant has of one agent, kind or tool.
func valueShardNames(tenant, value string) []string {
	names := make([]string, tenantShards)
	for n := range names {
		names[n] = valueShard(tenant, n, value)
	}
	return names
}

// What is due soon and the deadlines of open waits, which may be far away, have
// shards of their own, so that what is due too far ahead is found among the former.
const (
	dueSoon     = ""
	dueDeadline = "deadline-"
)

func dueShardNames(group string) []string {
	names := make([]string, dueShards)
	for i := range names {
		names[i] = dueShard(group, i)
	}
	return names
}

func dueShard(group string, n int) string { return fmt.Sprintf("%s%x", group, n) }
