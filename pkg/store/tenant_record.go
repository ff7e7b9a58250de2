package store

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// ReadTenantRecord reads the value of a record of a tenant, with the item to write it with. Of a record that is
// not there the value stays as it is, and the revision is 0. One that cannot be decoded is [ErrCorrupt].
func ReadTenantRecord(ctx context.Context, from Store, tenant, name string, value any) (Item, error) {
	item := TenantItem(journal.TenantRecord{Name: name}, 0)
	for found, err := range from.Items(ctx, session.Key{Tenant: tenant}, KindTenantRecord, name) {
		if err != nil {
			return item, fmt.Errorf("record %s of tenant %s: %w", name, tenant, err)
		}
		item = found
	}
	if item.Rev == 0 {
		return item, nil
	}
	if err := json.Unmarshal(item.TenantRecord.Value, value); err != nil {
		return item, fmt.Errorf("%w: record %s of tenant %s: %w", ErrCorrupt, name, tenant, err)
	}
	return item, nil
}
