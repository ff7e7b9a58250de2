// Package shards keeps a list in several partitions of an index, which are read as one.
package shards

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"

	"github.com/adjourn/adjourn/pkg/session"
)

// An index is spread over shards: DynamoDB takes 1,000 writes a second of one partition key,
// however large the table is. Writers choose a shard by a digest; readers read all shards at once
// and merge the results. The numbers are constants on purpose: docs/design/sharded-lists.md gives
// the reasons for them, and says how to raise PerTenant. It must never be lowered: items in a
// shard that is not read are in no list.
const (
	// PerTenant is over how many partitions the sessions, and the open waits, of
	// one tenant are spread.
	PerTenant = 8
	// ForDue is over how many partitions what is due is spread, of all tenants.
	ForDue = 16
)

// number returns the shard of a text: the first byte of its SHA-256 modulo the number
// of shards, which is a power of two up to 256.
func number(text string, shards int) int {
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

// OfSession names the shard of its tenant in which a session and its waits are listed.
func OfSession(key session.Key) string {
	return tenantShard(key.Tenant, number(key.ID, PerTenant))
}

// longValue is the length from which an agent's or tool's name is replaced by its
// digest in a key: DynamoDB takes 2 KB of partition key.
const longValue = 512

// valueShard names a shard of what a tenant has of one agent, kind or tool.
func valueShard(tenant string, n int, value string) string {
	if len(value) >= longValue {
		sum := sha256.Sum256([]byte(value))
		value = "#" + base64.RawURLEncoding.EncodeToString(sum[:])
	}
	return tenant + "#" + strconv.Itoa(n) + "#" + value
}

// Tenant returns the names of all shards of a tenant.
func Tenant(tenant string) []string {
	names := make([]string, PerTenant)
	for n := range names {
		names[n] = tenantShard(tenant, n)
	}
	return names
}

// noticesOf stands before the name of a shard of a tenant's notices. No tenant's begins so.
const noticesOf = "#notices#"

// OfNotice names the shard of its tenant in which the notices of a session are listed.
func OfNotice(key session.Key) string { return noticesOf + OfSession(key) }

// Notices returns the names of all shards of a tenant's notices.
func Notices(tenant string) []string {
	names := Tenant(tenant)
	for n := range names {
		names[n] = noticesOf + names[n]
	}
	return names
}

// OfValue names the shard in which a wait of a session is listed with its agent, kind or tool.
func OfValue(key session.Key, value string) string {
	return valueShard(key.Tenant, number(key.ID, PerTenant), value)
}

// Value returns the names of all shards of what a tenant has of one agent, kind or tool.
func Value(tenant, value string) []string {
	names := make([]string, PerTenant)
	for n := range names {
		names[n] = valueShard(tenant, n, value)
	}
	return names
}

// Group is one kind of what is due. What is due soon and the deadlines of open waits, which may be
// far away, have shards of their own, so that what is due too far ahead is found among the former.
type Group string

// The groups of what is due.
const (
	Soon     Group = ""
	Deadline Group = "deadline-"
)

// Due names the shard of a group in which an item is listed by its keys.
func Due(group Group, keys string) string { return dueShard(group, number(keys, ForDue)) }

// AllDue returns the names of all shards of a group.
func AllDue(group Group) []string {
	names := make([]string, ForDue)
	for i := range names {
		names[i] = dueShard(group, i)
	}
	return names
}

func dueShard(group Group, n int) string { return fmt.Sprintf("%s%x", group, n) }
