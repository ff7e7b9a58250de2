package place

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/adjourn/adjourn/internal/owned"
	"github.com/adjourn/adjourn/pkg/app"
	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/cli/internal/dev"
	"github.com/adjourn/adjourn/pkg/cli/internal/known"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/sqlite"
)

// Unknown is a data file that this user has never worked on, and what is in it. All of
// it is what whoever wrote the file says.
type Unknown struct {
	// Path of the file, absolute.
	Path string
	// Owner is the user it belongs to; "" if unknown.
	Owner string
	// Written is when it was written last.
	Written time.Time
	// Log says that the file itself is known, and what lies beside it is not: SQLite
	// takes a log for the file's own.
	Log bool
	// Keys is the file of keys beside it, by which a server lets callers in; "" if
	// there is none.
	Keys string
	// Running are sessions that go on at once, Waiting those that wait. More says that
	// there are others that were not looked at.
	Running, Waiting []session.Key
	More             bool
	// Approved are the approvals given in sessions that have not ended.
	Approved []Approval
}

// Approval is a yes that stands in a data file.
type Approval struct {
	Session session.Key
	// Tool runs with the arguments, unless it did already.
	Tool      string
	Arguments json.RawMessage
	// By is who approved it, as the file says.
	By string
}

// remember is told of a data file that this command makes.
func (p *Place) remember(id sqlite.Identity) {
	p.made = id.File
	_ = p.known().Keep(p.DataPath(), id) // checkKnown tries again, and says so
}

func (p *Place) known() *known.Files { return known.New(p.Env) }

// checkKnown refuses to work on a data file that this user has never used and does not
// trust now, and remembers the one that is worked on.
func (p *Place) checkKnown(ctx context.Context, a *embedded.App) error {
	files, id := p.known(), a.Identity()
	unknown := id.File == "" || id.File != p.made && !files.HasSoon(ctx, id)
	if unknown {
		if err := p.askTrust(ctx, a, id, files); err != nil {
			return err
		}
	}
	a.AcceptLog()
	if unknown {
		var err error
		if id, err = a.GiveIdentity(ctx); err != nil {
			return err
		}
	}
	if err := files.Keep(a.Data, id); err != nil && !p.trustData && !a.Settings.TrustData {
		p.Screen.Complain("%s cannot be remembered as yours (%v): the next command on it asks, and without a terminal needs --trust-data, or ADJOURN_TRUST_DATA=true", a.Data, err)
	}
	return nil
}

// TrustKeys refuses a file of keys that was there before the data file it lies beside:
// whoever brought it would be let in, under whatever name. Where there is a data file,
// that one is asked about.
func (p *Place) TrustKeys(keys dev.Keys) error {
	settings, err := app.ReadSettings(p.Env)
	if err != nil || p.trustData || settings.TrustData {
		return nil //nolint:nilerr // embedded.Open reports the mistake
	}
	if _, err := os.Lstat(p.DataPath()); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if !holdsKeys(keys.File) && !holdsKeys(keys.Links) {
		return nil
	}
	found := keys.File // lets callers in; the other one signs links by which they decide
	if !holdsKeys(found) {
		found = keys.Links
	}
	return fmt.Errorf("%w: %s is not there yet, but %s is: it lets callers in, whoever wrote it. Nothing was done. If it came with somebody else's folder move it away; if it is yours: --trust-data, or ADJOURN_TRUST_DATA=true",
		known.ErrUntrusted, Absolute(p.DataPath()), Absolute(found))
}

// holdsKeys reports whether there is anything but an empty file.
func holdsKeys(path string) bool {
	info, err := os.Lstat(path)
	return err == nil && (!info.Mode().IsRegular() || info.Size() > 0)
}

func (p *Place) askTrust(ctx context.Context, a *embedded.App, id sqlite.Identity, files *known.Files) error {
	if p.trustData || a.Settings.TrustData {
		return nil
	}
	u := Unknown{Path: Absolute(a.Data)}
	id.LogFound = false
	u.Log = files.Has(id)
	for _, keys := range []string{dev.KeysBeside(u.Path).Links, dev.KeysBeside(u.Path).File} {
		if holdsKeys(keys) {
			u.Keys = keys
		}
	}
	if p.Trust != nil {
		if err := u.look(ctx, a); err != nil {
			return fmt.Errorf("look into %s: %w", u.Path, err)
		}
		switch yes, err := p.Trust(ctx, u); {
		case err != nil:
			return err
		case yes:
			return nil
		}
	}
	what := "whatever is approved in it would run, whoever wrote it"
	if u.Log {
		what = "the log beside it (-wal) was left by no command of yours, and counts as what is in it"
	}
	return fmt.Errorf("%w: %s: %s. Nothing was done. Look at it (%s); if it is yours or you trust who wrote it: --trust-data, or ADJOURN_TRUST_DATA=true",
		known.ErrUntrusted, u.Path, what, p.Command("inbox"))
}

// How much of an unknown file is looked at.
const (
	mostTenants  = 20
	mostSessions = 100 // of a tenant, in each status
)

func (u *Unknown) look(ctx context.Context, a *embedded.App) error {
	info, err := os.Stat(u.Path)
	if err != nil {
		return err
	}
	u.Written = info.ModTime()
	if id, ok := owned.User(info); ok {
		u.Owner = owned.UserName(id)
	}
	tenants, err := a.Tenants(ctx, mostTenants+1)
	if err != nil {
		return err
	}
	u.More = len(tenants) > mostTenants
	for _, tenant := range tenants[:min(len(tenants), mostTenants)] {
		for _, status := range []session.Status{session.StatusRunning, session.StatusSuspended, session.StatusInterrupted} {
			page, err := a.Runtime.Sessions(ctx, runtime.SessionsParams{Tenant: tenant, Status: status, Limit: mostSessions})
			if err != nil {
				return err
			}
			u.More = u.More || page.Cursor != ""
			for _, head := range page.Heads {
				if err := u.see(ctx, a.Runtime, head); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (u *Unknown) see(ctx context.Context, r *runtime.Runtime, head journal.Head) error {
	waits, err := r.Waits(ctx, head.Key)
	if err != nil {
		return err
	}
	open := false
	for _, w := range waits {
		open = open || w.State == session.WaitOpen
		a := w.Answer
		// Of a suspension before the last what was approved has run.
		if a == nil || a.Approved == nil || !*a.Approved || w.TakenBy > 0 && head.WaitsAt > 0 && w.TakenBy < head.WaitsAt {
			continue
		}
		given := Approval{Session: head.Key, Tool: w.Wait.Tool, Arguments: w.Wait.Arguments, By: cmp.Or(a.Who, "somebody unnamed")}
		if a.EditedInput != nil {
			given.Arguments = a.EditedInput
		}
		u.Approved = append(u.Approved, given)
	}
	held := slices.ContainsFunc(waits, func(w journal.WaitRecord) bool { return w.Held && w.TakenBy == 0 })
	if head.Status == session.StatusRunning || head.Status == session.StatusSuspended && !open && !held {
		u.Running = append(u.Running, head.Key)
	} else {
		u.Waiting = append(u.Waiting, head.Key)
	}
	return nil
}
