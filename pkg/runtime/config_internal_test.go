package runtime

import (
	"log/slog"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/tool"
)

// fullConfig has a value in every field; the numbers differ.
func fullConfig(t *testing.T) Config {
	t.Helper()
	cfg := Config{
		Registry: &agent.Registry{}, Store: struct{ store.Store }{}, Queue: struct{ queue.Queue }{}, DeadLetters: struct{ queue.Queue }{},
		Files: tool.Files{Folder: "/files"}, ToolPolicy: &session.ToolPolicy{Default: session.ToolPrompt}, Log: slog.New(slog.DiscardHandler),
	}
	v := reflect.ValueOf(&cfg).Elem()
	for i := range v.NumField() {
		switch field := v.Field(i); field.Kind() {
		case reflect.Bool:
			field.SetBool(true)
		case reflect.Int, reflect.Int64:
			field.SetInt(int64(i + 1))
		case reflect.String:
			field.SetString(v.Type().Field(i).Name)
		case reflect.Func:
			field.Set(reflect.MakeFunc(field.Type(), func([]reflect.Value) []reflect.Value { panic("not called") }))
		default:
		}
		require.False(t, v.Field(i).IsZero(), "%s: give it a value here", v.Type().Field(i).Name)
	}
	return cfg
}

// TestNew_gives_its_parts_every_setting: New fills the configuration of each part field by field,
// and one that is forgotten would be zero without a word.
func TestNew_gives_its_parts_every_setting(t *testing.T) {
	t.Parallel()
	cfg := fullConfig(t)
	r, err := New(cfg)
	require.NoError(t, err)
	for name, part := range map[string]any{
		"stored": r.sessions, "answers": r.answers, "worker": r.worker, "sweep": r.sweep, "drive": r.driver,
	} {
		given := reflect.ValueOf(part).Elem().FieldByName("cfg")
		for i := range given.NumField() {
			setting := given.Type().Field(i).Name
			require.False(t, given.Field(i).IsZero(), "%s.Config.%s is not set", name, setting)
			ours := reflect.ValueOf(cfg).FieldByName(setting)
			if ours.IsValid() && ours.CanInt() {
				require.Equal(t, ours.Int(), given.Field(i).Int(), "%s.Config.%s", name, setting)
			}
		}
	}
}
