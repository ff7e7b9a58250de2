// Command deploy has SAM deploy template.yaml with answers that were checked first.
//
//	make deploy
//	make deploy JwtIssuer=https://login.example.com/ JwtAudience=adjourn    for scripts
//
// Six questions are asked at a terminal, with what samconfig.toml or the stack says
// as defaults; an answer that is wrong is refused with the reason, and asked again.
// Whatever parameter of the template is given by its name (as a variable of make, or
// in the environment) is not asked for. Without a terminal nothing is asked, and
// missing answers are listed.
//
// The answers are kept in samconfig.toml, where every sam deploy finds them. No secret
// is among them. Variables beside the parameters: STACK, REGION, and AWS's own.
//
// Exit codes: 0 deployed, 1 failed, 2 answers missing or wrong, 130 interrupted.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/adjourn/adjourn/internal/awscall"
	"github.com/adjourn/adjourn/internal/screen"
)

// deployment is one run of this program.
type deployment struct {
	out      io.Writer
	typed    <-chan string // lines of the terminal
	terminal bool

	template, buildDir, program string
	parameters                  map[string]parameter
	config                      *samconfig
	account                     *account
	stack                       string
	there                       *awscall.Stack // nil before the first deployment

	given   map[string]string // parameters by make or by the environment
	kept    map[string]string // what samconfig.toml says
	answers map[string]string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Getenv, os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, env func(string) string, in, out *os.File, errs io.Writer) int {
	flags := flag.NewFlagSet("deploy", flag.ContinueOnError)
	flags.SetOutput(errs)
	config := flags.String("config", "samconfig.toml", "file where the answers are kept")
	template := flags.String("template", "template.yaml", "the template")
	buildDir := flags.String("build-dir", filepath.Join(".aws-sam", "build"), "where SAM builds")
	program := flags.String("sam", "", "the SAM CLI; the one on the PATH, or that of .tools, by default")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	_, inOK := screen.Terminal(in)
	_, outOK := screen.Terminal(out)
	d := &deployment{
		out: out, terminal: inOK && outOK, template: *template, buildDir: *buildDir,
		given: map[string]string{}, answers: map[string]string{},
	}
	err := d.prepare(ctx, *config, *program, env)
	if err == nil {
		if d.terminal {
			d.typed = lines(in)
		}
		err = d.run(ctx)
	}
	var w *wrongError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errLeft), ctx.Err() != nil && !errors.Is(err, errInterrupted):
		_, _ = fmt.Fprintln(errs, "\ndeploy: left; nothing was changed")
		return 130
	case errors.Is(err, errInterrupted):
		_, _ = fmt.Fprintf(errs, "\ndeploy: interrupted. Your answers are in %s, so make deploy goes on with Enter.\nWhat CloudFormation has begun it ends by itself; until then another deployment is refused.\n", d.config.path)
		return 130
	case errors.As(err, &w):
		_, _ = fmt.Fprintln(errs, "deploy: "+w.words)
		return 2
	}
	_, _ = fmt.Fprintln(errs, "deploy: "+err.Error())
	return 1
}

// prepare finds out what there is: the template, the file, the account, the stack.
func (d *deployment) prepare(ctx context.Context, config, program string, env func(string) string) (err error) {
	if d.parameters, err = readParameters(d.template); err != nil {
		return err
	}
	if err = d.readGiven(env); err != nil {
		return err
	}
	// SAM looks for the file beside the template otherwise.
	if config, err = filepath.Abs(config); err != nil {
		return err
	}
	if d.config, err = readConfig(config); err != nil {
		return err
	}
	if d.kept, err = d.config.overrides(); err != nil {
		return err
	}
	if d.program, err = findSAM(cmp.Or(program, env("ADJOURN_SAM"))); err != nil {
		return err
	}
	name, err := d.config.word("stack_name")
	if err != nil {
		return err
	}
	d.stack = cmp.Or(env("STACK"), name, "adjourn")
	if !regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]{0,40}$`).MatchString(d.stack) {
		return wrong("STACK=%q: letters, digits and hyphens, a letter first, 41 at most", d.stack)
	}
	region, err := d.config.word("region")
	if err != nil {
		return err
	}
	if d.account, err = openAccount(ctx, cmp.Or(env("REGION"), region)); err != nil {
		return err
	}
	if d.account.Config.Region == "" {
		return wrong("no region is named: make deploy REGION=eu-west-1, or AWS_REGION%s", d.missing())
	}
	return d.look(ctx)
}

// readGiven takes parameters from the environment, where make puts what stands
// behind it, and refuses names that were meant for parameters.
func (d *deployment) readGiven(env func(string) string) error {
	meant := regexp.MustCompile(`(?:^|[^\\]\s)([A-Z][a-z][A-Za-z]*)=`)
	for _, found := range meant.FindAllStringSubmatch(env("MAKEFLAGS"), -1) {
		if _, ok := d.parameters[found[1]]; !ok {
			return wrong("template.yaml has no parameter %s; it has %s", found[1], strings.Join(slices.Sorted(maps.Keys(d.parameters)), ", "))
		}
		d.given[found[1]] = env(found[1])
	}
	for name, p := range d.parameters {
		if value := env(name); value != "" {
			d.given[name] = value
		}
		asked := slices.ContainsFunc(questions, func(q question) bool { return q.name == name })
		if value, ok := d.given[name]; ok && !asked {
			if fault := p.fault(value); fault != "" {
				return wrong("%s=%s: %s", name, value, fault)
			}
		}
	}
	return nil
}

// missing names the answers that nobody has given and nothing has a default for.
func (d *deployment) missing() string {
	var names []string
	for _, q := range questions {
		if d.effective(q.name) == "" && !q.none {
			names = append(names, q.name)
		}
	}
	if d.terminal || names == nil {
		return ""
	}
	return ". Missing, too: " + strings.Join(names, ", ")
}

// look says where this goes, and refuses where it could not.
func (d *deployment) look(ctx context.Context) error {
	number, who, err := d.account.identity(ctx)
	if err != nil {
		if ctx.Err() != nil {
			return err
		}
		return fmt.Errorf("AWS does not know you: %w\nName your credentials: aws configure, aws sso login, or AWS_PROFILE", err)
	}
	if d.there, err = d.account.findStack(ctx, d.stack); err != nil {
		return err
	}
	state := "a new stack"
	if d.there != nil {
		state = "an update"
	}
	d.say("Stack %s in %s, account %s: %s.\nYou are %s. STACK=…, REGION=… and AWS_PROFILE=… name others.\n\n", d.stack, d.account.Config.Region, number, state, who)
	switch {
	case d.there == nil:
	case strings.HasSuffix(d.there.Status, "_IN_PROGRESS"):
		return fmt.Errorf("the stack is being changed (%s): wait until that has ended", d.there.Status)
	case d.there.Status == "ROLLBACK_COMPLETE", d.there.Status == "ROLLBACK_FAILED", d.there.Status == "CREATE_FAILED", d.there.Status == "DELETE_FAILED":
		return fmt.Errorf("the stack is left of a deployment that failed (%s), and AWS takes no update of it. Why it failed stands among its events; remove it, then deploy again: sam delete --stack-name %s --region %s", d.there.Status, d.stack, d.account.Config.Region)
	}
	return nil
}

// effective is the value a parameter will have.
func (d *deployment) effective(name string) string {
	for _, said := range []map[string]string{d.answers, d.given, d.kept} {
		if value, ok := said[name]; ok {
			return value
		}
	}
	if d.there != nil {
		if value, ok := d.there.Parameters[name]; ok {
			return value
		}
	}
	return d.standard(name)
}

// standard is the template's default of a parameter.
func (d *deployment) standard(name string) string {
	p := d.parameters[name]
	return p.value()
}

// run asks, writes down, builds, deploys, and says what next.
func (d *deployment) run(ctx context.Context) error {
	if d.terminal {
		d.say("Six questions. Enter takes what stands in brackets; Ctrl-C leaves, and nothing is changed.\n\n")
	}
	if err := d.ask(ctx); err != nil {
		return err
	}
	if err := d.checkConcurrency(ctx); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return errLeft
	}
	protectAfter, err := d.writeDown()
	if err != nil {
		return err
	}
	d.say("Your answers are in %s.\n\n", d.shown())
	if err := d.build(ctx); err != nil {
		return err
	}
	if err := d.deploy(ctx); err != nil {
		return err
	}
	if protectAfter {
		d.say("\nThe stack is up. From now on its table refuses to be deleted: DeletionProtection=true.\n\n")
		on := "true"
		if err := errors.Join(d.config.setOverrides(map[string]*string{"DeletionProtection": &on}), d.config.write()); err != nil {
			return err
		}
		if err := d.deploy(ctx); err != nil {
			return err
		}
	}
	return d.tell(ctx)
}

// checkConcurrency compares the steps with what the account can run.
func (d *deployment) checkConcurrency(ctx context.Context) error {
	steps, err := strconv.Atoi(d.effective("MaxConcurrency"))
	if err != nil {
		return wrong("MaxConcurrency=%q is no number", d.effective("MaxConcurrency"))
	}
	all, free, err := d.account.concurrency(ctx)
	switch {
	case ctx.Err() != nil:
		return errLeft
	case err != nil:
		d.say("Not checked: how many invocations the account runs at once (%v).\n", err)
		return nil
	case steps >= all:
		return wrong("the account runs %d invocations at once in %s, and MaxConcurrency=%d leaves none of them for the API and the sweep: deploy with MaxConcurrency=%d, or have the quota raised (Service Quotas, AWS Lambda, Concurrent executions)", all, d.account.Config.Region, steps, max(2, all/2))
	case d.effective("ReserveConcurrency") == "true" && free-steps < 100:
		return wrong("ReserveConcurrency=true: of %d unreserved invocations %d would be left for all other functions of the account, and AWS wants 100: deploy with ReserveConcurrency=false", free, free-steps)
	}
	d.say("The account runs %d invocations at once; %d are for steps (MaxConcurrency), the rest for the API.\n", all, steps)
	return nil
}

// writeDown puts the answers into samconfig.toml. It returns whether the table is to
// be protected once it is there: a protected one stays behind when a first deployment
// fails, and the stack could not be removed before it.
func (d *deployment) writeDown() (protectAfter bool, err error) {
	changes := map[string]*string{}
	for _, said := range []map[string]string{d.given, d.answers} {
		for name, value := range said {
			changes[name] = &value
		}
	}
	const protection = "DeletionProtection"
	if _, given := d.given[protection]; !given && d.parameters[protection].value() != "true" {
		kept := d.kept[protection]
		switch {
		case d.there == nil && kept != "false":
			changes[protection], protectAfter = nil, true
		case d.there != nil && kept == "":
			on := "true"
			changes[protection] = &on
		}
	}
	for key, value := range map[string]string{"stack_name": d.stack, "region": d.account.Config.Region} {
		if err := d.config.setWord(key, value); err != nil {
			return false, err
		}
	}
	if err := d.config.setOverrides(changes); err != nil {
		return false, err
	}
	return protectAfter, d.config.write()
}

// shown is the file as seen from here.
func (d *deployment) shown() string {
	here, err := os.Getwd()
	if err != nil {
		return d.config.path
	}
	if short, err := filepath.Rel(here, d.config.path); err == nil && filepath.IsLocal(short) {
		return short
	}
	return d.config.path
}

// tell says what to paste next.
func (d *deployment) tell(ctx context.Context) error {
	there, err := d.account.findStack(ctx, d.stack)
	if err != nil {
		return err
	}
	if there == nil {
		return fmt.Errorf("the stack %s is not there", d.stack)
	}
	address := there.Outputs["ApiUrl"]
	d.say(`
Deployed: %s

What next, with a token of your issuer:

  export ADJOURN_URL=%s ADJOURN_TOKEN=…
  make build
  bin/adjourn inbox
  make smoke URL="$ADJOURN_URL" TOKEN="$ADJOURN_TOKEN"    # its agents are there after make deploy Lab=true

docs/deploy.md says how to call it; make deploy again brings each change of yours.
`, address, address)
	return nil
}
