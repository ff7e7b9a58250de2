package httpapi

import (
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/adjourn/adjourn/pkg/runtime"
	"github.com/adjourn/adjourn/pkg/session"
)

// Caller is who sent a request, as an [Authenticator] verified it.
type Caller struct {
	// Tenant whose sessions the caller may see. It is never taken from a request's body.
	Tenant string
	// Who is recorded with every answer, and asked for where only some may answer.
	Who string
	// From says from where, for the record; empty means the address the request came from.
	From string
	// Roles of the caller, asked for where only some may answer. They are as sure as Who is.
	Roles []string
	// OneUser says that the caller is the one user of a data file, whose name tells nobody apart.
	OneUser bool
	// Unverified says that nobody has verified who this is.
	Unverified bool
	// Operator says that this is whoever runs the program, who may halt every tenant. No
	// authenticator of callers sets it.
	Operator bool
}

// Authenticator says who sent a request, by its headers or by what a gateway
// verified before; it does not read the body. It is safe for concurrent use. An
// error that wraps [ErrUnauthenticated] is answered with 401, one that wraps
// [ErrForbidden] with 403, any other one with 500.
type Authenticator func(*http.Request) (Caller, error)

// What an [Authenticator] refuses with.
var (
	// ErrUnauthenticated: nobody knows who this is.
	ErrUnauthenticated = errors.New("unauthenticated")
	// ErrForbidden: the caller is known, and has no business here.
	ErrForbidden = errors.New("forbidden")
)

// Anonymous is who everybody is where [Config.AllowUnauthenticated] says that nobody is asked.
const Anonymous = "anonymous"

const (
	// DefaultMaxWait is how long a request may wait for a session unless [Config.MaxWait] says
	// otherwise: under the 30 s that API Gateway gives an integration.
	DefaultMaxWait = 20 * time.Second
	// DefaultMaxBody leaves room for an input of [runtime.MaxInput] in JSON, under
	// the 6 MB that Lambda takes in one request.
	DefaultMaxBody = runtime.MaxInput + 1<<20
	// DefaultMaxResult is how many bytes of a result others take as well.
	DefaultMaxResult = 1 << 20
	// DefaultMaxError is how many bytes of an error others take as well.
	DefaultMaxError = 8 << 10
	// DefaultMaxPage keeps an answer under the 6 MB that Lambda returns, in which
	// our JSON is a string that is escaped once more.
	DefaultMaxPage = 3 << 20
)

// Config wires the handler. Runtime is required, and so is Authenticate unless
// AllowUnauthenticated is set.
type Config struct {
	Runtime      *runtime.Runtime
	Authenticate Authenticator
	// AllowUnauthenticated serves everybody as [Anonymous] in the tenant
	// [session.DefaultTenant]. It counts only where Authenticate is nil.
	AllowUnauthenticated bool
	// InProcess says that the handler's only caller is the program it is part of, as with
	// [github.com/adjourn/adjourn/pkg/client.Over]: faults of this side are told in full.
	InProcess bool
	// Links make and serve links to approvals; nil means that there are none.
	Links *Links
	// Slack takes what the buttons of cards in Slack ask; nil means that nobody decides there.
	Slack *Slack
	// Functions whose routes are served; empty means all.
	Functions []Function
	// MaxWait is how long a request may wait for a session at most; 0 means
	// [DefaultMaxWait], less than 0 that none may wait.
	MaxWait time.Duration
	// ReadOnly says that the process may write nothing for a read: who has read a wait goes to the log, at
	// the level info, instead of the wait's audit.
	ReadOnly bool
	// HidesDisconnects says that a request's context does not end when its client goes away, as on
	// AWS Lambda: the preference [client.PreferCancelOnDisconnect] is not granted then. Elsewhere
	// the context must end with [context.Canceled] as its cause when the client goes, and with
	// another cause when the server ends the request.
	HidesDisconnects bool
	// MaxBody is the largest body in bytes that is read; 0 means [DefaultMaxBody].
	MaxBody int64
	// MaxResult is how many bytes the result of an answer may have, its edited input and its reply;
	// MaxError its error and its reason. 0 means [DefaultMaxResult] and [DefaultMaxError].
	MaxResult, MaxError int
	// MaxPage is how many bytes the items of a page may have, unless there is only
	// one; 0 means [DefaultMaxPage].
	MaxPage int64
	// Fits reports whether a body can be sent as the answer to a request; nil means
	// that every one can. Of one that cannot, the largest values are left out, as
	// [client.LeftOut] says.
	Fits func(*http.Request, []byte) bool
	// Log gets a line at debug for each request and one at error for each 5xx; no
	// secret is in them. Nil means none.
	Log *slog.Logger
	// Now is the clock that says how long a request took; nil means the machine's.
	Now func() time.Time
	// NewID makes the id of a request; nil means 26 random characters.
	NewID func() string
}

// New returns the handler of the HTTP API. It fails on a configuration that is
// open to everybody without saying so. The handler is safe for concurrent use.
func New(cfg Config) (http.Handler, error) {
	if cfg.Runtime == nil {
		return nil, errors.New("httpapi: Runtime is required")
	}
	if cfg.Authenticate == nil {
		if !cfg.AllowUnauthenticated {
			return nil, errors.New("httpapi: Authenticate is required; to serve everybody without asking who they are, set AllowUnauthenticated")
		}
		cfg.Authenticate = func(*http.Request) (Caller, error) {
			return Caller{Tenant: session.DefaultTenant, Who: Anonymous}, nil
		}
	}
	for _, f := range cfg.Functions {
		if !slices.Contains(Functions(), f) {
			return nil, fmt.Errorf("httpapi: there is no function %q", f)
		}
	}
	if cfg.MaxWait == 0 {
		cfg.MaxWait = DefaultMaxWait
	}
	if cfg.MaxBody <= 0 {
		cfg.MaxBody = DefaultMaxBody
	}
	if cfg.MaxResult <= 0 {
		cfg.MaxResult = DefaultMaxResult
	}
	if cfg.MaxError <= 0 {
		cfg.MaxError = DefaultMaxError
	}
	if cfg.MaxPage <= 0 {
		cfg.MaxPage = DefaultMaxPage
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now //nolint:forbidigo // the default of a clock that is a field; it measures requests and decides nothing
	}
	if cfg.NewID == nil {
		cfg.NewID = rand.Text //nolint:forbidigo // names a request in a log; it is not stored, and nothing depends on it
	}
	h := &handler{cfg: cfg, mux: http.NewServeMux()}
	for _, route := range table {
		if len(cfg.Functions) > 0 && !slices.Contains(cfg.Functions, route.Function) {
			continue
		}
		h.mux.HandleFunc(route.Method+" "+route.Path, func(w http.ResponseWriter, r *http.Request) {
			h.respond(w, r, route.open(), func(r *request) (*response, error) { return route.carryOut(h, r) })
		})
	}
	return h, nil
}
