package inbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/adjourn/adjourn/internal/screen"
	"github.com/adjourn/adjourn/pkg/app/embedded"
	"github.com/adjourn/adjourn/pkg/cli/internal/place"
	"github.com/adjourn/adjourn/pkg/cli/internal/report"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/tool"
)

// settles is how long a card has to be there, unchanged, before a key counts: a key that was on its way
// is meant for what was there before.
const settles = 300 * time.Millisecond

// listed is how many waits the list has.
const listed = 200

// sessions is what walking needs of a connection.
type sessions interface {
	Inbox(ctx context.Context, p client.InboxParams) (client.Waits, error)
	Wait(ctx context.Context, id, wait string) (client.WaitView, error)
	Submit(ctx context.Context, p client.SubmitParams) (client.Submitted, error)
	Extend(ctx context.Context, p client.ActParams[client.ExtendRequest]) (client.Acted, error)
	Delegate(ctx context.Context, p client.ActParams[client.DelegateRequest]) (client.Acted, error)
	Tool(agent, name string) (tool.Tool, bool)
}

// walker is a person's way through what waits. In the list keys move and open; only in an open card keys
// decide, and after a decision the list is there again: so a key that is held down decides one card at most.
type walker struct {
	s     *screen.Screen
	out   io.Writer
	now   func() time.Time
	e     sessions
	query client.InboxParams
	// hint is the command that answers a wait.
	hint func(w client.Wait) string
	// edit lets the person change arguments.
	edit func(ctx context.Context, arguments json.RawMessage) (json.RawMessage, error)

	waits []client.Wait
	more  bool
	at    int
	note  string
	// card that is open, nil in the list.
	card *openCard
	// typed is what the person types, nil unless they do: then every key is text.
	typed *typing
	// decided are the sessions that may go on.
	decided map[string]bool
}

// openCard is a wait that is shown.
type openCard struct {
	view client.WaitView
	// is tells this card from one that has changed.
	is []byte
	// shownAt is when it appeared, or changed.
	shownAt time.Time
	// top is the first line on the screen, end the last line that was, of all.
	top, end, lines int
	// edited arguments, with which it would be approved; nil for those shown.
	edited json.RawMessage
}

// typing is a line that the person types.
type typing struct {
	label string
	text  []rune
	done  func(ctx context.Context, text string)
}

// Walk walks through what waits, where somebody is at a terminal. It reports whether it did: where nobody
// is, where nothing waits, or where there is no data, the list is to be printed.
func (b *Inbox) Walk(ctx context.Context, q client.InboxParams) (walked bool, err error) {
	s := b.cfg.Screen
	if _, out := screen.Terminal(s.Stdout); !out || !b.cfg.Person.There() || s.Env("TERM") == "dumb" {
		return false, nil
	}
	e, err := b.cfg.Place.Open(ctx, true)
	if errors.Is(err, embedded.ErrNoData) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer report.Close(s, b.cfg.Place, e)
	q.Limit, q.Cursor = listed, ""
	w := &walker{
		s: s, out: s.Stdout, now: b.cfg.Now, e: e, query: q, decided: map[string]bool{},
		hint: func(w client.Wait) string { return report.AnswerHint(b.cfg.Place, w.SessionID, w) },
	}
	if err := w.load(ctx); err != nil || len(w.waits) == 0 {
		return false, err
	}
	if err := w.walkRaw(ctx, b.cfg.Stdin, b.cfg.Person.Edit); err != nil {
		return true, err
	}
	b.goOn(ctx, e, w.decided)
	return true, nil
}

// goOn works on the sessions of a data file that were decided on; a server does so by itself.
func (b *Inbox) goOn(ctx context.Context, e *place.Connection, decided map[string]bool) {
	if b.cfg.Place.Remote() || len(decided) == 0 {
		return
	}
	b.cfg.Screen.Talk("%s decided on. Their work goes on here; Ctrl-C leaves it to others: %s", screen.Count(int64(len(decided)), "session"), b.cfg.Place.Command("work"))
	for _, id := range slices.Sorted(maps.Keys(decided)) {
		if err := e.Drive(ctx, id); err != nil && ctx.Err() == nil {
			b.cfg.Screen.Complain("session %s: %v", screen.CleanLine(id), err)
		}
	}
}

// walkRaw walks with the terminal in raw mode, which it leaves for an editor and at the end.
func (w *walker) walkRaw(ctx context.Context, in io.Reader, edit func(context.Context, json.RawMessage) (json.RawMessage, error)) error {
	restore, err := screen.Raw(in)
	if err != nil {
		return fmt.Errorf("cannot walk through the inbox on this terminal: %w", err)
	}
	w.edit = func(ctx context.Context, arguments json.RawMessage) (edited json.RawMessage, err error) {
		if err := restore(); err != nil {
			return nil, err
		}
		defer func() {
			var rawErr error
			restore, rawErr = screen.Raw(in)
			err = errors.Join(err, rawErr)
		}()
		return edit(ctx, arguments)
	}
	defer func() {
		w.s.Paint(w.out, "")
		_ = restore() // the program is about to end, or says what went wrong on what there is
	}()
	return w.walk(ctx, &reader{in: in, now: w.now})
}

// walk reads keys until the person leaves.
func (w *walker) walk(ctx context.Context, r *reader) error {
	for {
		w.paint()
		keys, err := r.next(ctx)
		if errors.Is(err, errLeft) {
			return nil
		}
		if err != nil {
			return err
		}
		for _, k := range keys {
			if !w.press(ctx, k) {
				return nil
			}
		}
	}
}

// load reads the list anew, and stays at the wait it was at.
func (w *walker) load(ctx context.Context) error {
	page, err := w.e.Inbox(ctx, w.query)
	if err != nil {
		return err
	}
	w.waits, w.more = page.Items, page.Cursor != ""
	w.at = max(min(w.at, len(w.waits)-1), 0)
	return nil
}

// reload is load, of which a failure is told on the screen.
func (w *walker) reload(ctx context.Context) {
	if err := w.load(ctx); err != nil {
		w.note = "The list is as it was: " + err.Error()
	}
}

// open shows a card.
func (w *walker) open(ctx context.Context) {
	if w.at >= len(w.waits) {
		return
	}
	of := w.waits[w.at]
	view, err := w.e.Wait(ctx, of.SessionID, of.WaitID)
	if err != nil {
		w.note = err.Error()
		w.reload(ctx)
		return
	}
	w.show(view)
}

// show puts a card on the screen, from when on its time counts.
func (w *walker) show(view client.WaitView) {
	w.card = &openCard{view: view, is: identity(view), shownAt: w.now()}
}

// identity is what a card must still be for a key to count.
func identity(v client.WaitView) []byte {
	raw, err := json.Marshal(struct {
		Wait client.Wait
		May  bool
	}{v.Wait, v.MayAnswer})
	if err != nil {
		return nil // it came as JSON
	}
	return raw
}

// unchanged reads the card's wait again. Where it is not what is shown any more the new one is shown, and
// what the person was about to do does not count.
func (w *walker) unchanged(ctx context.Context) bool {
	c := w.card
	view, err := w.e.Wait(ctx, c.view.Wait.SessionID, c.view.Wait.WaitID)
	switch {
	case err != nil:
		w.note = "Nothing was done: " + err.Error()
		return false
	case c.is != nil && bytes.Equal(identity(view), c.is):
		return true
	}
	w.show(view)
	w.note = "It has changed since it was shown. Look again."
	return false
}
