package httpapi

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/adjourn/adjourn/internal/codes"
	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/httpapi/internal/jsonbody"
	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

const (
	defaultLimit = 100
	maxLimit     = 1000
	// maxEntriesWait is the longest wait of a long poll, in seconds.
	maxEntriesWait = 20
)

// parameters reads the query: only those that are named, each once at most.
func (r *request) parameters(names ...string) (url.Values, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, refuse(codes.InvalidParameter, "the query cannot be read: write it as name=value, joined with &")
	}
	for name, given := range values {
		if !slices.Contains(names, name) {
			return nil, refuse(codes.InvalidParameter, "there is no parameter %s here", jsonbody.Quoted(name))
		}
		if len(given) > 1 {
			return nil, refuse(codes.InvalidParameter, "the parameter %s is there twice", name)
		}
	}
	return values, nil
}

// number reads a parameter that is a whole number in a range; it may be left out.
func number(values url.Values, name string, lowest, highest, otherwise int64) (int64, error) {
	if !values.Has(name) {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(values.Get(name), 10, 64)
	if err != nil || n < lowest || n > highest {
		return 0, refuse(codes.InvalidParameter, "%s must be a whole number from %d to %d", name, lowest, highest)
	}
	return n, nil
}

// flag reads a parameter that is true or false; left out it is false.
func flag(values url.Values, name string) (bool, error) {
	switch values.Get(name) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	if values.Has(name) {
		return false, refuse(codes.InvalidParameter, "%s must be true or false", name)
	}
	return false, nil
}

func limit(values url.Values) (int, error) {
	n, err := number(values, "limit", 1, maxLimit, defaultLimit)
	return int(n), err
}

func status(values url.Values) (session.Status, error) {
	s := session.Status(values.Get("status"))
	if values.Has("status") && !slices.Contains(session.Statuses(), s) {
		return "", refuse(codes.InvalidParameter, "status must be one of %s", listed(session.Statuses()))
	}
	return s, nil
}

// listed joins what may be given.
func listed[T ~string](all []T) string {
	texts := make([]string, len(all))
	for i, one := range all {
		texts[i] = string(one)
	}
	return strings.Join(texts, ", ")
}

// words reads parameters that are not empty, if they are there.
func words(values url.Values, into map[string]*string) error {
	for name, to := range into {
		if *to = values.Get(name); values.Has(name) && *to == "" {
			return refuse(codes.InvalidParameter, "the parameter %s is empty: leave it out, or say which", name)
		}
	}
	return nil
}

// idempotencyKey reads the header as it is: a comma in it is part of the key.
func (r *request) idempotencyKey() (string, error) {
	given := r.Header.Values(client.HeaderIdempotencyKey)
	if len(given) == 0 {
		return "", nil
	}
	invisible := func(c rune) bool { return c < '!' || c > '~' }
	if len(given) > 1 || given[0] == "" || len(given[0]) > 255 || strings.ContainsFunc(given[0], invisible) {
		return "", refuse(codes.InvalidHeader, "%s must be there once, with 1 to 255 visible ASCII characters", client.HeaderIdempotencyKey)
	}
	return given[0], nil
}

// waitPreference is what a caller prefers of the time until the answer.
type waitPreference struct {
	// wait is bounded by what the server grants; given says that there is one.
	wait  time.Duration
	given bool
	// cancels says that the task is to be cancelled if the client goes away while it waits.
	cancels bool
}

// preferredWait reads wait=N and cancel-on-disconnect of the Prefer headers (RFC 7240). A
// preference that cannot be read is none.
func (h *handler) preferredWait(r *request) (p waitPreference) {
	decided := false
	for _, preference := range strings.Split(strings.Join(r.Header.Values(client.HeaderPrefer), ","), ",") {
		preference, _, _ = strings.Cut(preference, ";")
		name, value, valued := strings.Cut(preference, "=")
		switch name = strings.TrimSpace(name); {
		case strings.EqualFold(name, client.PreferCancelOnDisconnect):
			p.cancels = !valued && !h.cfg.HidesDisconnects
		case strings.EqualFold(name, "wait") && !decided: // the first one counts
			decided = true
			seconds, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 31)
			if err == nil && h.cfg.MaxWait >= 0 {
				p.wait, p.given = min(time.Duration(seconds)*time.Second, h.cfg.MaxWait), true
			}
		}
	}
	p.cancels = p.cancels && p.wait > 0
	return p
}

// applied is the Preference-Applied of a wait.
func (p waitPreference) applied() string {
	text := fmt.Sprintf("wait=%d", p.wait/time.Second)
	if p.cancels {
		text += ", " + client.PreferCancelOnDisconnect
	}
	return text
}

// settle waits for a session to rest, past an entry, as long as the caller
// prefers, and says where it stands then. task is the one that the request started or drove on, and
// that is cancelled if the client prefers that and goes away; 0 for none. What was asked for has
// been done by now: whatever fails here is left out of the answer, and does not turn it into an error.
func (h *handler) settle(r *request, key session.Key, past, task int64, out *response) (s *client.Session, rests bool) {
	if prefers := h.preferredWait(r); prefers.given {
		prefers.cancels = prefers.cancels && task > 0
		out.header[client.HeaderPreferenceApplied] = prefers.applied()
		var err error
		if rests, err = h.cfg.Runtime.AwaitRest(r.Context(), key, past, prefers.wait); err != nil {
			h.leftOut(r, key, err)
			if prefers.cancels {
				h.cancelAbandoned(r, key, past, task)
			}
		}
	}
	stands, err := h.stand(r.Context(), key)
	if err != nil {
		h.leftOut(r, key, err)
		return nil, rests
	}
	return stands, rests
}

const (
	// cancelWithin is how long the cancelling of a task may take whose client went away.
	cancelWithin = 5 * time.Second
	// reasonDisconnected is kept with it.
	reasonDisconnected = "the client went away"
)

// cancelAbandoned cancels a task if the client that waited for it went away. One that rests by now
// was not abandoned: its answer was made. That the server ends the request is another cause.
func (h *handler) cancelAbandoned(r *request, key session.Key, past, task int64) {
	if !errors.Is(context.Cause(r.Context()), context.Canceled) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), cancelWithin)
	defer cancel()
	rests, err := h.cfg.Runtime.AwaitRest(ctx, key, past, 0)
	if err == nil && !rests {
		_, err = h.cfg.Runtime.Stop(ctx, runtime.StopParams{Key: key, Kind: runtime.SignalCancel, Reason: reasonDisconnected, Task: task, Caller: r.by()})
	}
	if err != nil {
		h.cfg.Log.WarnContext(ctx, "the task of a client that went away is not cancelled", "request", r.id, "session", key.String(), "task", task, "error", err)
	}
}

// drives returns the present task of a session, if the caller prefers that the task which the
// request drives on is cancelled when the client goes away; else 0.
func (h *handler) drives(r *request) (task int64, err error) {
	if !h.preferredWait(r).cancels {
		return 0, nil
	}
	head, err := h.cfg.Runtime.Head(r.Context(), r.key())
	return head.Task, err
}

func (h *handler) leftOut(r *request, key session.Key, err error) {
	h.cfg.Log.WarnContext(r.Context(), "where a session stands is left out of an answer", "request", r.id, "session", key.String(), "error", err)
}

func (h *handler) stand(ctx context.Context, key session.Key) (*client.Session, error) {
	view, err := h.cfg.Runtime.View(ctx, key)
	if err != nil {
		return nil, err
	}
	return newSession(key, view), nil
}

// cut is one page of a list that is in memory. A cursor says which list it
// belongs to and where it goes on; lists only grow at their end, or begin anew.
func cut[T any](kind string, all []T, values url.Values, maxPage int64) (page []T, cursor string, err error) {
	most, err := limit(values)
	if err != nil {
		return nil, "", err
	}
	from := 0
	if text := values.Get("cursor"); text != "" {
		raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
		name, at, _ := strings.Cut(string(raw), ":")
		from, _ = strconv.Atoi(at)
		if err != nil || name != kind || from < 1 || strconv.Itoa(from) != at {
			return nil, "", &runtime.Error{Code: runtime.CodeInvalidCursor, Message: "the cursor is not one that this list gave out"}
		}
	}
	all = all[min(from, len(all)):]
	n, err := fitting(all[:min(most, len(all))], maxPage)
	if err != nil {
		return nil, "", err
	}
	if n < len(all) {
		cursor = base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s:%d", kind, from+n))
	}
	return append([]T{}, all[:n]...), cursor, nil // [] and not null
}

// fittingPage reads a page of at most limit items, and again with as many as fit into one answer: only
// the store knows the cursor behind those.
func fittingPage[T any](limit int, maxPage int64, read func(limit int) ([]T, string, error)) ([]T, string, error) {
	for {
		items, cursor, err := read(limit)
		if err != nil {
			return nil, "", err
		}
		n, err := fitting(items, maxPage)
		if err != nil || n == len(items) {
			return items, cursor, err
		}
		limit = n
	}
}

// fitting returns how many of the items fit into one answer; one always does.
func fitting[T any](items []T, maxPage int64) (int, error) {
	size := int64(0)
	for i, item := range items {
		raw, err := json.Marshal(item)
		if err != nil {
			return 0, err
		}
		if size += int64(len(raw)); size > maxPage && i > 0 {
			return i, nil
		}
	}
	return len(items), nil
}
