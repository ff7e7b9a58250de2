package session_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
)

func TestValidateTags(t *testing.T) {
	t.Parallel()
	var most []string
	for i := range session.MaxTags {
		most = append(most, fmt.Sprintf("t%d", i))
	}
	for _, tags := range [][]string{nil, {"a"}, {"team:web", "cost=7", "a/b.c_d@e+f-g", "0", "9", strings.Repeat("x", session.MaxTag)}, most} {
		require.NoError(t, session.ValidateTags(tags))
	}
	for _, tags := range [][]string{{""}, {"a b"}, {"a,b"}, {"é"}, {"a#"}, {";"}, {"a", "b", "a"}, {strings.Repeat("x", session.MaxTag+1)}, append(most, "more")} {
		require.Error(t, session.ValidateTags(tags), "%q", tags)
	}
}
