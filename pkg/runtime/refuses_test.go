// run: cp this file to pkg/runtime && nice -n 5 go test ./pkg/runtime -run 'TestDecide_refused' -count=2
package runtime_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

// TestDecide_refused_is_audited: who may not decide leaves a line, by whatever verb.
func TestDecide_refused_is_audited(t *testing.T) {
	t.Parallel()
	w, p := waiting(t, "guarded")
	_, err := p.Decide(context.Background(), runtime.DecideParams{Key: w.key, Caller: person, Approve: []string{w.open(session.WaitApproval).Wait.ID}})
	require.Equal(t, runtime.CodeNotAllowed, codeOf(err))
	require.Len(t, w.items(store.KindAudit), 1)
}
