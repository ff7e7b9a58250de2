package httpapi_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

func TestLists_keep_only_some(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for id, body := range map[string]string{
		"one": `{"sessionId":"one","agent":"desk","input":"deploy","tags":["web","cost=7"]}`,
		"two": `{"sessionId":"two","agent":"desk","input":"deploy"}`,
	} {
		out := w.send(map[string]string{"one": ann, "two": carol}[id], http.MethodPost, "/sessions", body)
		require.Equal(t, http.StatusAccepted, out.Code, out.Body.String())
		w.drive(session.Key{Tenant: "acme", ID: id})
	}
	for query, want := range map[string][]string{
		"tag=web": {"one"}, "tag=cost%3D7": {"one"}, "tag=other": nil, "user=carol": {"two"}, "agent=desk": {"one", "two"}, "agent=other": nil,
		"root=two": {"two"}, "user=ann&tag=web&status=suspended": {"one"}, "user=ann&status=completed": nil,
	} {
		var ids []string
		for _, s := range get[client.Sessions](w, ann, "/sessions?"+query).Items {
			ids = append(ids, s.ID)
		}
		require.ElementsMatch(t, want, ids, query)
		require.Empty(t, get[client.Sessions](w, eve, "/sessions?"+query).Items)
	}
	one := get[client.Sessions](w, ann, "/sessions?tag=web").Items[0]
	require.Equal(t, []string{"web", "cost=7"}, one.Tags)
	require.Equal(t, "ann", one.StartedBy)
	for query, want := range map[string]int{
		"kind=approval": 2, "kind=question": 0, "tool=deploy": 2, "tool=other": 0, "user=ann": 2, "root=two": 1, "agent=desk&root=one&kind=approval": 1, "agent=x": 0,
		"mine=true": 2, "mine=false": 2, "text=DEPLOY": 2, "text=refund": 0, "risk=high": 0, "openedBefore=2026-01-01T00:00:00Z": 0, "openedBefore=2027-01-01T00:00:00%2B01:00&text=v1": 2,
	} {
		require.Len(t, get[client.Waits](w, ann, "/waits?"+query).Items, want, query)
		require.Empty(t, get[client.Waits](w, eve, "/waits?"+query).Items)
	}
	for _, target := range []string{"/sessions?agent=", "/sessions?tool=x", "/sessions?tag=a&tag=b", "/waits?tag=x", "/waits?kind=odd", "/waits?kind=", "/waits?user=", "/waits?mine=yes", "/waits?mine=true&user=ann", "/waits?openedBefore=monday", "/waits?text=", "/waits?risk=grave"} {
		require.Equal(t, codes.InvalidParameter, problem(t, w.send(ann, http.MethodGet, target, "")).Code, target)
	}
	for _, tags := range []string{`["a","a"]`, `[""]`, `["a b"]`, `"a"`} {
		out := w.send(ann, http.MethodPost, "/sessions", `{"agent":"desk","input":"deploy","tags":`+tags+`}`)
		require.Equal(t, http.StatusBadRequest, out.Code, tags)
	}
}
