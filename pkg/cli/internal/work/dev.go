package work

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/agent"
	"github.com/adjourn/adjourn/pkg/cli/internal/dev"
	"github.com/adjourn/adjourn/pkg/cli/internal/exit"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// devAddr is where the server listens when nobody says otherwise.
const devAddr = "127.0.0.1:8420"

// devConcurrency is how many sessions it works on at once then.
const devConcurrency = 8

// devFlags are the flags of dev.
type devFlags struct {
	addr        string
	allowRemote bool
	showKey     bool
	lab         bool
	concurrency int
	policy      string
}

// Dev returns the command dev.
func (c *Commands) Dev() *cobra.Command {
	var f devFlags
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Serve the HTTP API on this machine, and work on what comes in",
		Long: `Serve the HTTP API on the data file and work on its sessions, in one process,
until Ctrl-C. It prints its address, its API key and what to paste next.

The key is made at the first start, for you: it lies in .adjourn/token, and the
server keeps its hash in .adjourn/api-keys. Beside a data file elsewhere they
are named after it: try.db.token, try.db.api-keys. Only this machine can reach
the server, unless --allow-remote says otherwise; its HTTP is not encrypted, so
put something in front of it that is.

For each approval that opens, a link is printed: its page shows what waits, and
whoever has it may decide in your name. Links are signed with a key of the data
file's (.adjourn/link-key), or with those in ADJOURN_GRANT_KEYS. They begin with
ADJOURN_PUBLIC_URL, if it is set: the address that a phone can reach.

Agents that are there to try things out do for whoever has a key what their
tools can do, so they are offered only with --lab, or ADJOURN_LAB=true. Their
files then stay in the folder adjourn-lab beside the data, or in
ADJOURN_LAB_FOLDER.

A policy of tools (--policy, or ADJOURN_POLICY) holds every task that begins
here, whatever its caller asks for.

Any number of commands may use the same data file beside it.`,
		Example: `  adjourn dev
  adjourn dev --lab
  adjourn dev --addr 127.0.0.1:0 --data ./try.db`,
		Args: c.cfg.NoArgs("this command takes none"),
		RunE: c.cfg.Here("dev", func(ctx context.Context, _ []string) error {
			return c.dev(ctx, f)
		}),
	}
	flags := cmd.Flags()
	flags.StringVar(&f.addr, "addr", devAddr, "`address` to listen on, as host:port; port 0 is any free one")
	flags.BoolVar(&f.allowRemote, "allow-remote", false, "also take an address that other machines can reach")
	flags.BoolVar(&f.showKey, "show-key", false, "print the API key also when it is not new")
	flags.BoolVar(&f.lab, "lab", false, "also offer the agents that are there to try things out")
	flags.StringVar(&f.policy, "policy", "", "`FILE` (YAML or JSON) with the policy of tools that every task is held to that begins here")
	flags.IntVar(&f.concurrency, "concurrency", devConcurrency, "work on at most this `number` of sessions at once, 1 to 64")
	return cmd
}

// HideTrials takes out of the help of dev what is about agents that the program lacks.
func HideTrials(cmd *cobra.Command, registry *agent.Registry) {
	if len(registry.AllWithheld()) > 0 || slices.ContainsFunc(registry.Names(), func(name string) bool { a, _ := registry.Agent(name); return a.Trial }) {
		return
	}
	_ = cmd.Flags().MarkHidden("lab")
	before, after, _ := strings.Cut(cmd.Long, "Agents that are there")
	_, after, _ = strings.Cut(after, "\n\n")
	cmd.Long, cmd.Example = before+after, strings.Replace(cmd.Example, "  "+cmd.Root().Use+" dev --lab\n", "", 1)
}

// words are those that start this server again.
func (f devFlags) words() []string {
	words := []string{"dev"}
	if f.lab {
		words = append(words, "--lab")
	}
	if f.addr != devAddr {
		words = append(words, "--addr", f.addr)
	}
	if f.allowRemote {
		words = append(words, "--allow-remote")
	}
	if f.policy != "" {
		words = append(words, "--policy", f.policy)
	}
	if f.concurrency != devConcurrency {
		words = append(words, "--concurrency", strconv.Itoa(f.concurrency))
	}
	return words
}

func (c *Commands) dev(ctx context.Context, f devFlags) error {
	if f.concurrency < 1 || f.concurrency > 64 {
		return exit.Usagef("--concurrency %d: use 1 to 64", f.concurrency)
	}
	var policy *session.ToolPolicy
	if f.policy != "" {
		var err error
		if policy, err = readPolicy(f.policy); err != nil {
			return err
		}
	}
	c.Watch = c.logEntry
	if err := c.TrustKeys(dev.KeysBeside(c.DataPath())); err != nil {
		return err
	}
	listener, err := dev.Bind(ctx, f.addr, f.allowRemote)
	if err != nil {
		return c.notServed(f.addr, err)
	}
	a, err := c.Serve(ctx, f.lab, policy)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	defer report.Close(c.Screen, c.Place, a)
	c.NoProgress() // many sessions at once: a line for each thing that happens instead
	keys := dev.KeysBeside(a.Data)
	server, err := dev.Listen(ctx, dev.Config{
		App: a, Listener: listener, Keys: keys, Who: c.cfg.Who, Concurrency: f.concurrency,
		Log: c.Log(), OnRequest: c.logRequest, Now: c.cfg.Now,
	})
	if err != nil {
		return err
	}
	c.served(server, a.Registry, keys, f.showKey)
	links, stop := c.printLinks(ctx, server, a.Runtime)
	defer stop()
	c.Watch = func(key session.Key, p runtime.Progress) {
		c.logEntry(key, p)
		links(key, p)
	}
	end := whenStopped(ctx, c.Screen, "Stopping. What is under way comes to a safe point first; Ctrl-C again stops at once.")
	err = server.Serve(ctx)
	end() // or a server that stops at once would say it among what it says in the end
	if err != nil {
		return err
	}
	c.leftBehind(context.WithoutCancel(ctx), a.Runtime, f.words())
	return nil
}

// countUpTo is as far as sessions are counted.
const countUpTo = 1000

// leftBehind says what a server that stopped leaves undone, and how that goes on.
func (c *Commands) leftBehind(ctx context.Context, r *runtime.Runtime, again []string) {
	c.Talk("Stopped.")
	for _, left := range []struct {
		status session.Status
		one    string
		many   string
		next   []string
	}{
		{session.StatusRunning, "has work left; what goes on with it", "have work left; what goes on with them", again},
		{session.StatusSuspended, "waits; what for", "wait; what for", []string{"inbox"}},
	} {
		page, err := r.Sessions(ctx, runtime.SessionsParams{Tenant: session.DefaultTenant, Status: left.status, Limit: countUpTo})
		n := int64(len(page.Heads))
		switch {
		case err != nil || n == 0: // nothing is lost by not knowing
		case n == 1:
			c.Talk("1 session %s: %s", left.one, c.Command(left.next...))
		case page.Cursor != "":
			c.Talk("Over %d sessions %s: %s", n, left.many, c.Command(left.next...))
		default:
			c.Talk("%d sessions %s: %s", n, left.many, c.Command(left.next...))
		}
	}
}

// notServed says why there is no server, and what to do.
func (c *Commands) notServed(addr string, err error) error {
	switch {
	case errors.Is(err, dev.ErrNotLoopback):
		return exit.Usagef("--addr %s: %v. Use 127.0.0.1, or add --allow-remote if they may; what they send can then be read on the way", addr, err)
	case errors.Is(err, dev.ErrInUse):
		return &exit.RefusalError{Code: "address_in_use", Cause: err, Message: fmt.Sprintf(
			"%v: is another server running there? Stop it, or use --addr 127.0.0.1:0 for a free port", err)}
	case errors.Is(err, dev.ErrAddress):
		return exit.Usagef("--addr %s: %v", addr, err)
	}
	return err
}

// served prints where the server is, and what to paste next.
func (c *Commands) served(server *dev.Server, registry *agent.Registry, keys dev.Keys, showKey bool) {
	data, key := place.Absolute(c.DataPath()), server.Key()
	token, hashes := place.Absolute(keys.Token), place.Absolute(keys.File)
	if c.Form == screen.FormJSON {
		out := struct {
			URL       string `json:"url"`
			Data      string `json:"data"`
			TokenFile string `json:"tokenFile"`
			KeyFile   string `json:"keyFile"`
			Key       string `json:"key,omitempty"`
		}{URL: server.URL(), Data: data, TokenFile: token, KeyFile: hashes}
		if showKey {
			out.Key = key.Text
		}
		c.JSON(out)
		return
	}
	c.Say("%s %s", c.Bold(c.Stdout, "Serving "+server.URL()), "and working on the sessions in "+screen.CleanLine(data)+".")
	c.Say("Ctrl-C stops it; nothing is lost.\n")
	switch {
	case key.Fresh:
		c.Say("Your API key, made just now:  %s", key.Text)
	case showKey:
		c.Say("Your API key:  %s", key.Text)
	default:
		c.Say("Your API key is the one of before (--show-key prints it).")
	}
	c.Say("It is in %s, which only you can read.", screen.CleanLine(token))
	c.Say("The server keeps its hash, in %s.\n", screen.CleanLine(hashes))
	c.saidOfTrials(registry)
	if len(registry.Names()) == 0 {
		return // there is nothing to paste
	}
	c.Say("Paste into a second terminal:")
	for _, line := range curlLines(server.URL(), token, registry) {
		c.Say("  %s", line)
	}
	c.Say("\nOr let this program speak to it, from a third one:")
	for _, words := range devWords(registry) {
		c.Say("  %s", c.devCommandLine(server.URL(), token, words...))
	}
	c.Say("")
}

// saidOfTrials says what a server does not offer, and how it is asked for; or what it
// gives to everybody who has a key.
func (c *Commands) saidOfTrials(registry *agent.Registry) {
	offered, withheld := []string{}, registry.AllWithheld()
	for _, name := range registry.Names() {
		if a, _ := registry.Agent(name); a.Trial {
			offered = append(offered, name)
		}
	}
	switch {
	case len(offered) > 0:
		c.Say("Offered to everybody who has a key, to try things out: %s.\n", strings.Join(offered, ", "))
	case len(withheld) > 0 && len(registry.Names()) == 0:
		c.Say("No agent is offered: %s are there to try things out. To offer them: %s\n", strings.Join(withheld, ", "), c.Command("dev", "--lab"))
	case len(withheld) > 0:
		c.Say("Not offered, for they are there to try things out (--lab offers them): %s.\n", strings.Join(withheld, ", "))
	}
}

// devSession is the session of the lines to paste.
const devSession = "hello"

// firstWait is what a session waits for whose first reply needs a person.
const firstWait = "w2-1"

// labAgent is the agent that needs no model; a user's own program may lack it.
const labAgent = "lab"

// FirstInput returns the agent and the input of the lines to paste: one that
// pauses where there is the lab, else whatever the program has.
func FirstInput(registry *agent.Registry) (name, input string, pauses bool) {
	if _, ok := registry.Agent(labAgent); ok {
		return labAgent, "[{call: deploy, with: {service: web}}, {say: deployed}]", true
	}
	names := registry.Names()
	if len(names) == 0 {
		return "AGENT", "hello", false
	}
	return names[0], "hello", false
}

func curlLines(url, token string, registry *agent.Registry) []string {
	name, input, pauses := FirstInput(registry)
	lines := []string{
		"URL=" + place.Quote(url),
		`KEY="Authorization: Bearer $(cat ` + place.Quote(token) + `)"`,
		"JSON='Content-Type: application/json'",
		fmt.Sprintf(`curl -sS "$URL/sessions" -H "$KEY" -H "$JSON" -H 'Prefer: wait=10' -d '{"sessionId": "%s", "agent": "%s", "input": "%s"}'`, devSession, name, input),
		fmt.Sprintf(`curl -sS "$URL/sessions/%s" -H "$KEY"`, devSession),
	}
	if pauses {
		lines = append(lines, fmt.Sprintf(`curl -sS "$URL/sessions/%s/resume" -H "$KEY" -H "$JSON" -H 'Prefer: wait=10' -d '{"decisions": {"approve": ["%s"]}}'`, devSession, firstWait))
	}
	return append(lines, fmt.Sprintf(`curl -sS "$URL/sessions/%s/messages" -H "$KEY"`, devSession))
}

func devWords(registry *agent.Registry) [][]string {
	name, input, _ := FirstInput(registry)
	return [][]string{{"run", "--agent", name, input}, {"inbox"}, {"show", devSession}}
}

// devCommandLine is a command of this program that speaks to the server.
func (c *Commands) devCommandLine(url, token string, words ...string) string {
	return c.At(url, token).Command(words...)
}

// logRequest prints a line for a request.
func (c *Commands) logRequest(r dev.Request) {
	outcome := strconv.Itoa(r.Status)
	if r.Left {
		outcome = "the caller left"
	}
	took := screen.Span(r.Took)
	if r.Took < time.Millisecond {
		took = "under 1ms"
	}
	c.Talk("%s  %s %s  %s, %s", c.cfg.Now().Format("15:04:05"), screen.CleanLine(r.Method), screen.Short(r.Path, 100), outcome, took)
}

// logEntry prints a line for an entry of a session's journal.
func (c *Commands) logEntry(key session.Key, p runtime.Progress) {
	if text := screen.EntryWords(p); text != "" {
		c.Talk("%s  %s  %s", c.cfg.Now().Format("15:04:05"), screen.CleanLine(key.ID), text)
	}
	if p.Status.Ended() && key.Tenant == session.DefaultTenant {
		report.Ended(c.Screen, c.Place, key.ID)
	}
}

// mostLinks is how many sessions may wait at once for their links to be printed; more get none.
const mostLinks = 100

// printLinks prints a link for each approval that opens and that the server's own user may answer. What
// it returns is told of entries and waits for nobody; stop ends it.
func (c *Commands) printLinks(ctx context.Context, server *dev.Server, r *runtime.Runtime) (told func(session.Key, runtime.Progress), stop func()) {
	suspended := make(chan session.Key, mostLinks)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case key := <-suspended:
				c.printLinksOf(ctx, server, r, key)
			}
		}
	}()
	told = func(key session.Key, p runtime.Progress) {
		if p.Kind != session.KindSuspended || key.Tenant != session.DefaultTenant {
			return
		}
		select {
		case suspended <- key:
		default:
		}
	}
	return told, func() { cancel(); <-done }
}

func (c *Commands) printLinksOf(ctx context.Context, server *dev.Server, r *runtime.Runtime, key session.Key) {
	view, err := r.View(ctx, key)
	if err != nil {
		return // it was deleted, or the server stops
	}
	for _, record := range view.Open {
		w := record.Wait
		if w.Kind != session.WaitApproval || record.State != session.WaitOpen {
			continue
		}
		if url, err := server.Link(ctx, key, w.ID); err == nil { // others may answer it, or it was answered
			c.Talk("%s  %s  %s (%s) in a browser: %s", c.cfg.Now().Format("15:04:05"), screen.CleanLine(key.ID), w.ID, screen.CleanLine(w.Tool), url)
		}
	}
}
