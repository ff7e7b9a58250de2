package lambdafn

import (
	"context"
	"errors"
	"io"
	"log/slog"

	"github.com/aws/aws-lambda-go/lambdacontext"
)

// NewLog returns a log of one JSON object a line, with the request id of the
// invocation that wrote it.
func NewLog(w io.Writer, level slog.Level) *slog.Logger {
	return slog.New(&requestLog{slog.NewJSONHandler(w, &slog.HandlerOptions{Level: level})})
}

// requestLog adds the request id that Lambda keeps in the context.
type requestLog struct{ slog.Handler }

func (h *requestLog) Handle(ctx context.Context, r slog.Record) error {
	if lc, ok := lambdacontext.FromContext(ctx); ok && lc.AwsRequestID != "" {
		r.AddAttrs(slog.String("requestId", lc.AwsRequestID))
	}
	return h.Handler.Handle(ctx, r)
}

func (h *requestLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &requestLog{h.Handler.WithAttrs(attrs)}
}

func (h *requestLog) WithGroup(name string) slog.Handler {
	return &requestLog{h.Handler.WithGroup(name)}
}

// logFailure logs an error, a panic's stack with it. Lost work that comes again is
// a warning; a panic is an error of the program.
func logFailure(ctx context.Context, log *slog.Logger, message string, err error, attrs ...any) {
	attrs = append(attrs, "error", shortly(err))
	var panicked *PanicError
	if errors.As(err, &panicked) {
		log.ErrorContext(ctx, message, append(attrs, "stack", string(panicked.Stack))...)
		return
	}
	log.WarnContext(ctx, message, attrs...)
}

// maxErrorText bounds what an error may put into the log: some quote what they
// could not read.
const maxErrorText = 500

func shortly(err error) string {
	text := err.Error()
	if len(text) > maxErrorText {
		return text[:maxErrorText] + "…"
	}
	return text
}
