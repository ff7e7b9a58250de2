// Command smoke tells the story of Adjourn through the HTTP API of a deployment.
//
// A stranger is refused; a session of 25 steps runs, longer than any chain that
// Lambda would let pass for no loop; one pauses for an approval while nothing
// runs; one waits for a message; an event starts one, once. It needs no model.
//
//	smoke -url https://….execute-api.eu-west-1.amazonaws.com     with ADJOURN_TOKEN
//
// With -stack NAME it also looks beneath the API, with the caller's AWS
// credentials: it counts invocations in the functions' logs, sees the queue empty
// and sends events. AWS_ENDPOINT_URL leads it to a local AWS.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/adjourn/adjourn/pkg/client"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Getenv, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "smoke:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, env func(string) string, out io.Writer) error {
	flags := flag.NewFlagSet("smoke", flag.ContinueOnError)
	url := flags.String("url", "", "where the API is; the stack's output ApiUrl when left out")
	stack := flags.String("stack", "", "name of the stack, to look beneath the API with AWS credentials")
	rest := flags.Duration("rest", 65*time.Second, "how long a paused session is watched, a sweep's minute and a little by default")
	most := flags.Duration("most", 10*time.Minute, "how long the whole story may take")
	if err := flags.Parse(args); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, *most, fmt.Errorf("the story took longer than %s", *most))
	defer cancel()

	var below *beneath
	if *stack != "" {
		var err error
		if below, err = look(ctx, *stack); err != nil {
			return err
		}
		if *url == "" {
			*url = below.outputs["ApiUrl"]
		}
	}
	token := env("ADJOURN_TOKEN")
	if *url == "" {
		return errors.New("name a deployment: make smoke URL=… or STACK=… (-url, -stack)")
	}
	if token == "" {
		return errors.New("a caller's token is missing: make smoke … TOKEN=… (or ADJOURN_TOKEN)")
	}
	caller, err := client.New(client.Config{URL: *url, Token: token})
	if err != nil {
		return err
	}
	s := &story{out: out, token: token, caller: caller, below: below, rest: *rest, quiet: quiet, still: still, now: time.Now}
	if other := env("ADJOURN_OTHER_TOKEN"); other != "" {
		if s.other, err = client.New(client.Config{URL: *url, Token: other}); err != nil {
			return err
		}
	}
	err = s.tell(ctx)
	if err != nil && below != nil {
		lines, failed := below.complaints(context.WithoutCancel(ctx), 20)
		s.say("\nWhat the functions complained of last:")
		for _, line := range lines {
			s.say("%.400s", strings.TrimSpace(line)) // a stack is in the log itself
		}
		if failed != nil {
			s.say("Their logs cannot be read: %v", failed)
		}
	}
	return err
}
