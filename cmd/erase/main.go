// Command erase deletes the sessions that one person started, for good.
//
// It looks for them in the table of a deployment, lists them, asks, deletes each
// whole with what lies in the bucket, and says what of the person remains where:
//
//	erase -table "$(out StateTable)" -bucket "$(out BlobBucket)" -tenant acme -person ana
//
// The names are outputs of the stack; make erase STACK=adjourn looks them up.
// AWS credentials and the region are the caller's. A run that was cut short is
// finished by the next one of the same tenant.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout, open)
	stop()
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, errUsage):
		fmt.Fprintln(os.Stderr, "erase:", err)
		os.Exit(2)
	default:
		fmt.Fprintln(os.Stderr, screen.Sprintf("erase: %s", err.Error()))
		os.Exit(1)
	}
}

var (
	errUsage   = errors.New("say what is to be erased (erase -h)")
	errRefused = errors.New("nothing was deleted")
)

// where a deployment keeps its sessions.
type where struct{ table, bucket string }

// run does what the arguments say. Its answer is read from in when that is a terminal.
func run(ctx context.Context, args []string, in io.Reader, out io.Writer, open func(context.Context, where) (store.Store, error)) error {
	var at where
	e := &eraser{out: out, now: time.Now, sleep: sleep}
	flags := flag.NewFlagSet("erase", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&at.table, "table", "", "name of the table: the stack's output StateTable")
	flags.StringVar(&at.bucket, "bucket", "", "name of the bucket: the stack's output BlobBucket")
	flags.StringVar(&e.tenant, "tenant", "", "tenant the person belongs to")
	flags.StringVar(&e.person, "person", "", "who is to be forgotten: the claim sub of their token, as adjourn sessions --user takes it")
	flags.BoolVar(&e.running, "running", false, "delete sessions also while a step of theirs runs; its side effects are not undone")
	flags.BoolVar(&e.named, "named", false, "read every other session of the tenant whole, and list those in which the person's name stands")
	yes := flags.Bool("yes", false, "delete without asking")
	if err := flags.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return err
		}
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	var missing []string
	for _, need := range []struct{ name, value string }{{"-table", at.table}, {"-bucket", at.bucket}, {"-tenant", e.tenant}, {"-person", e.person}} {
		if need.value == "" {
			missing = append(missing, need.name)
		}
	}
	if len(missing) > 0 || flags.NArg() > 0 {
		return fmt.Errorf("%w: missing %s; not understood %q", errUsage, strings.Join(missing, ", "), flags.Args())
	}
	if err := store.ValidateTenant(e.tenant); err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	var err error
	if e.store, err = open(ctx, at); err != nil {
		return err
	}
	e.agree = func(question string) error {
		if *yes {
			return nil
		}
		return ask(in, out, question)
	}
	return e.erase(ctx)
}

// ask wants a yes typed at a terminal; anything else is a no.
func ask(in io.Reader, out io.Writer, question string) error {
	if _, terminal := screen.Terminal(in); !terminal {
		return fmt.Errorf("%w: there is no terminal to ask at; -yes (make erase … YES=1) says yes", errRefused)
	}
	if _, err := fmt.Fprintf(out, "%s [y/N] ", question); err != nil {
		return err
	}
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if answer = strings.ToLower(strings.TrimSpace(answer)); answer != "y" && answer != "yes" {
		return errRefused
	}
	return nil
}

// open connects to a deployment with the caller's credentials.
func open(ctx context.Context, at where) (store.Store, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, fmt.Errorf("AWS configuration: %w", err)
	}
	if cfg.Region == "" {
		return nil, errors.New("name the stack's region in AWS_REGION")
	}
	return dynamostore.New(dynamostore.Config{
		DynamoDB: dynamodb.NewFromConfig(cfg), Table: at.table,
		// Local endpoints have no host name for each bucket.
		Blobs:  s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = cfg.BaseEndpoint != nil }),
		Bucket: at.bucket, Now: time.Now, NewID: app.NewID,
	})
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
