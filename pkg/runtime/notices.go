package runtime

import (
	"context"

	"github.com/adjourn/adjourn/pkg/store"
)

// NoticesParams select notices of a tenant.
type NoticesParams struct {
	Tenant string
	Limit  int
	Cursor string
}

// Notices lists what was told outside, or is to be, the newest first: each with the key of its
// session. Of one that cannot be read there is the id and when it was written.
func (r *Runtime) Notices(ctx context.Context, p NoticesParams) (store.Page, error) {
	page, err := r.cfg.Store.Find(ctx, store.FindParams{Kind: store.FindNotices, Tenant: p.Tenant, Limit: p.Limit, Cursor: p.Cursor})
	r.logUnreadable(ctx, page)
	return asResult(page, err)
}
