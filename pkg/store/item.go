package store

import (
	"strconv"

	"github.com/adjourn/adjourn/pkg/session"
)

// HeadItem returns HEAD as an item at revision rev.
func HeadItem(head session.Head, rev int64) Item {
	return Item{Kind: KindHead, Rev: rev, Head: &head}
}

// WaitItem returns a wait's record as an item at revision rev.
func WaitItem(wait session.WaitRecord, rev int64) Item {
	return Item{Kind: KindWait, ID: wait.Wait.ID, Rev: rev, Wait: &wait}
}

// RunItem returns a run's record as an item at revision rev.
func RunItem(run session.Run, rev int64) Item {
	return Item{Kind: KindRun, ID: strconv.FormatInt(run.ID, 10), Rev: rev, Run: &run}
}

// ToolItem returns the ledger of a call as an item at revision rev.
func ToolItem(tool session.ToolRecord, rev int64) Item {
	return Item{Kind: KindTool, ID: tool.Call, Rev: rev, Tool: &tool}
}

// MailItem returns mail as an item at revision rev.
func MailItem(mail session.Mail, rev int64) Item {
	return Item{Kind: KindMail, ID: mail.ID, Rev: rev, Mail: &mail}
}

// IdempotencyItem returns an idempotency record as an item at revision rev.
func IdempotencyItem(record session.Idempotency, rev int64) Item {
	return Item{Kind: KindIdempotency, ID: record.Key, Rev: rev, Idempotency: &record}
}
