package serverless

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/adjourn/adjourn/internal/notice"
	"github.com/adjourn/adjourn/internal/notice/eventbridge"
	"github.com/adjourn/adjourn/internal/outbox"
	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// notifyTime bounds the message that has a notice sent: who answers does not wait for longer, and
// what is not sent the sweep finds.
const notifyTime = 2 * time.Second

// writeNotices returns the store with an outbox around it, if notices are written here: who has a
// queue for them has somebody who sends them.
func writeNotices(cfg aws.Config, s Settings, to store.Store, log *slog.Logger) store.Store {
	if s.NoticeQueueURL == "" || len(s.Notices.Channels) == 0 {
		return to
	}
	client := sqs.NewFromConfig(cfg)
	return outbox.New(outbox.Config{Store: to, Channels: s.Notices.Channels, Tenants: s.Notices.Tenants(), Log: log, Notify: func(ctx context.Context, key session.Key, id string) error {
		body, err := json.Marshal(journal.NewNoticeWake(key, id))
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), notifyTime)
		defer cancel()
		_, err = client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &s.NoticeQueueURL, MessageBody: aws.String(string(body))})
		if err != nil {
			return fmt.Errorf("queue of notices: %w", err)
		}
		return nil
	}})
}

// sendNotices returns what sends notices to the channels whose settings are there.
func sendNotices(cfg aws.Config, s Settings, c Config, from store.Store, log *slog.Logger) (*notice.Sender, error) {
	channels, err := s.Notices.Open(c.Now)
	if err != nil {
		return nil, err
	}
	if s.NoticeBus != "" {
		channels = append(channels, eventbridge.New(eventbridge.Config{AWS: cfg, Bus: s.NoticeBus, Now: c.Now}))
	}
	return notice.NewSender(notice.Config{Store: from, Channels: channels, Now: c.Now, Log: log, Link: s.Notices.Link, Grants: s.Notices.Grants()}), nil
}
