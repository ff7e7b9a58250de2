package app_test

import (
	"fmt"

	"github.com/adjourn/adjourn/pkg/app"
)

// Settings come from the environment; every mistake is told at once.
func Example() {
	env := map[string]string{"ADJOURN_LEASE": "soon", "ADJOURN_LOG": "loud"}
	_, err := app.ReadSettings(func(name string) string { return env[name] })
	fmt.Println(err)

	settings, err := app.ReadSettings(func(string) string { return "" })
	fmt.Println(settings.Data, settings.Lease, err)
	// Output:
	// invalid setting: ADJOURN_LEASE="soon": use a duration of at least 1s, such as 20s or 1m
	// invalid setting: ADJOURN_LOG="loud": use debug, info, warn, error or off
	// .adjourn/adjourn.db 20s <nil>
}
