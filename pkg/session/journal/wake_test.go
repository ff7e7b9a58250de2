package journal_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

func TestParseWake(t *testing.T) {
	t.Parallel()
	want := journal.NewWake(session.Key{Tenant: "acme", ID: "s1"}, 3, journal.WakeResume)
	body, err := json.Marshal(want)
	require.NoError(t, err)
	require.JSONEq(t, `{"v":1,"tenant":"acme","session":"s1","seq":3,"kind":"resume"}`, string(body))
	got, err := journal.ParseWake(body)
	require.NoError(t, err)
	require.Equal(t, want, got)

	newer, err := journal.ParseWake([]byte(`{"v":2,"tenant":"acme","session":"s1","kind":"later"}`))
	require.NoError(t, err, "a newer program may read it")
	require.Equal(t, 2, newer.V)

	for name, body := range map[string]string{
		"empty": "", "not JSON": "hello", "null": "null", "list": "[]",
		"no version": `{"tenant":"acme","session":"s1","seq":3,"kind":"step"}`,
		"no entry":   `{"v":1,"tenant":"acme","session":"s1","kind":"step"}`,
		"no kind":    `{"v":1,"tenant":"acme","session":"s1","seq":3}`,
		"odd tenant": `{"v":1,"tenant":"a/b","session":"s1","seq":3,"kind":"step"}`,
		"no session": `{"v":1,"tenant":"acme","seq":3,"kind":"step"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := journal.ParseWake([]byte(body))
			require.ErrorIs(t, err, journal.ErrInvalidWake)
		})
	}
}
