package runtime_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/llm"
	"github.com/adjourn/adjourn/pkg/runtime"
)

// Mail is taken in once, whatever comes after it.
func TestMail_is_told_once(t *testing.T) {
	t.Parallel()
	made := newEffects()
	echo := calls("echo", `{"text":"1"}`)
	w := newWorld(t, made, helper(made, script{"go": {echo, echo, says("bye")}}))
	p := w.process(func(cfg *runtime.Config) { cfg.StepsPerInvocation = 1 })
	w.start(p, "go")
	for _, message := range []string{"first", "second"} {
		w.mail(message, message)
		_, err := p.deliverOne(t.Context())
		require.NoError(t, err)
	}
	require.NoError(t, p.settle())
	told := map[string]int{}
	for _, m := range w.session().Messages {
		if m.Role == llm.RoleUser {
			told[m.Text()]++
		}
	}
	require.Equal(t, map[string]int{"go": 1, "first": 1, "second": 1}, told)
	w.checkAtRest()
}
