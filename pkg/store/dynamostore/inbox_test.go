package dynamostore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore"
)

var inboxOf = store.FindParams{Kind: store.FindWaits, Tenant: "acme"}

// openWait is an open wait as it lies in the table; blob is where its value lies, if not in it.
func openWait(id, blob string, size int64) item {
	it := item{
		"pk": str("S#acme#s-1"), "sk": str("WAIT#" + id), "rev": num(1), "inbox": str("acme"),
		"inboxAt": str("~#2026-02-03T04:05:06.123456789Z#s-1#" + id),
	}
	if blob == "" {
		it["body"] = str(`{"state":"open","wait":{"id":"` + id + `"}}`)
		return it
	}
	it["blob"], it["blobBytes"] = str(blob), num(size)
	return it
}

// inbox answers a search with these waits, as often as asked.
func inbox(waits ...item) (answers []answer) {
	rows := is(&dynamodb.QueryOutput{Items: waits})
	return []answer{rows, is(&dynamodb.BatchGetItemOutput{Responses: map[string][]map[string]types.AttributeValue{"adjourn": waits}})}
}

// put keeps an open wait with arguments of a size in the bucket.
func (b *bucket) put(t *testing.T, id string, size int) item {
	t.Helper()
	raw, err := json.Marshal(journal.WaitRecord{State: session.WaitOpen, Wait: session.Wait{ID: id, Arguments: json.RawMessage(`"` + noise(1, size) + `"`)}})
	require.NoError(t, err)
	name := "sessions/acme/s-1/" + hashOf(raw)
	b.objects[name] = raw
	return openWait(id, name, int64(len(raw)))
}

// ids tells what was found, with a - before what was not read.
func ids(t *testing.T, page store.Page) (all []string) {
	t.Helper()
	for _, f := range page.Found {
		if f.Unread == nil {
			all = append(all, f.Item.ID)
			continue
		}
		all = append(all, "-"+f.Item.ID)
		require.Equal(t, journal.WaitRecord{Wait: session.Wait{ID: f.Item.ID, OpenedAt: epoch}, State: session.WaitOpen}, *f.Item.Wait)
	}
	return all
}

// One wait that cannot be read must not hide what else waits for people.
func TestFind_the_inbox_lists_what_cannot_be_read(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, f, b := scripted(t)
		denied := b.put(t, "w1-4", 300_000)
		moved := b.put(t, "w1-6", 300_000)
		delete(moved, "inbox") // the index still has it
		garbled := openWait("w1-5", "", 0)
		garbled["body"] = str("{")
		b.fault = func(_, name string) error {
			if name == denied["blob"].(*types.AttributeValueMemberS).Value {
				return forbidden
			}
			return nil
		}
		f.answers = inbox(openWait("w1-1", "", 0), openWait("w1-2", "sessions/acme/s-1/gone", 300_000),
			b.put(t, "w1-3", 300_000), denied, garbled, moved, openWait("w1-7", "", 0))
		page, err := s.Find(t.Context(), inboxOf)
		require.NoError(t, err)
		require.Equal(t, []string{"w1-1", "-w1-2", "w1-3", "-w1-4", "-w1-5", "w1-7"}, ids(t, page))
		require.ErrorIs(t, page.Found[1].Unread, store.ErrCorrupt)
		require.ErrorIs(t, page.Found[3].Unread, store.ErrUnavailable)
		require.Len(t, page.Found[2].Item.Wait.Wait.Arguments, 300_002)
	})
}

// A page holds so many bytes and no more; the next one goes on behind them, and
// one that is too large by itself is not fetched.
func TestFind_a_page_of_the_inbox_is_bounded_in_bytes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s, f, b := scripted(t)
		waits := []item{openWait("w1-0", "sessions/acme/s-1/huge", 9<<20)}
		for i := range 5 {
			waits = append(waits, b.put(t, fmt.Sprintf("w1-%d", i+1), 3<<20))
		}
		p := inboxOf
		var pages [][]string
		for rest := waits; ; {
			f.answers = inbox(rest...)
			page, err := s.Find(t.Context(), p)
			require.NoError(t, err)
			pages = append(pages, ids(t, page))
			if p.Cursor = page.Cursor; p.Cursor == "" {
				break
			}
			rest = rest[len(page.Found):]
			require.Equal(t, page.Found[len(page.Found)-1].Item.ID, string(waits[len(waits)-len(rest)-1]["sk"].(*types.AttributeValueMemberS).Value[5:]))
		}
		require.Equal(t, [][]string{{"-w1-0", "w1-1", "w1-2"}, {"w1-3", "w1-4"}, {"w1-5"}}, pages)
		for i := 2; i < len(f.asked); i += 2 {
			position := "~#2026-02-03T04:05:06.123456789Z#s-1#" + []string{"w1-2", "w1-4"}[i/2-1]
			require.Equal(t, str(position), f.asked[i].(*dynamodb.QueryInput).ExpressionAttributeValues[":v1"])
		}
	})
}

// mute is a bucket that does not answer.
type mute struct{ *bucket }

func (mute) GetObject(ctx context.Context, _ *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func muted(t *testing.T, answers ...answer) *dynamostore.Store {
	t.Helper()
	s, err := dynamostore.New(dynamostore.Config{
		DynamoDB: &fake{t: t, answers: answers}, Table: "adjourn", Blobs: mute{}, Bucket: "blobs",
		Now: func() time.Time { return epoch }, NewID: func() string { return "id" },
	})
	require.NoError(t, err)
	return s
}

// A bucket that is silent costs a list some seconds, not the time of its caller.
func TestFind_the_inbox_does_not_wait_for_a_silent_bucket(t *testing.T) {
	waits := []item{openWait("w1-0", "", 0)}
	for i := range 20 {
		waits = append(waits, openWait(fmt.Sprintf("w1-%d", i+1), "sessions/acme/s-1/x", 300_000))
	}
	t.Parallel()
	bubbleOnce(t, "what is there is listed", func(t *testing.T) {
		began := time.Now()
		page, err := muted(t, inbox(waits...)...).Find(t.Context(), inboxOf)
		require.NoError(t, err)
		require.Len(t, page.Found, len(waits))
		require.NoError(t, page.Found[0].Unread)
		for _, found := range page.Found[1:] {
			require.ErrorContains(t, found.Unread, "did not answer in time")
		}
		require.Equal(t, 8*time.Second, time.Since(began))
	})
	bubbleOnce(t, "the caller's time is up before", func(t *testing.T) {
		cause := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		_, err := muted(t, inbox(waits...)...).Find(ctx, inboxOf)
		require.ErrorIs(t, err, cause)
	})
}
