package dynamostore_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/stretchr/testify/require"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/session/journal"
	"github.com/adjourn/adjourn/pkg/store"
)

// spelled is the value of an assignment in an update.
func spelled(in *dynamodb.UpdateItemInput, begins string) string {
	_, rest, _ := strings.Cut(*in.UpdateExpression, begins)
	number, _, _ := strings.Cut(rest, ",")
	v, _ := in.ExpressionAttributeValues[":v"+number].(*types.AttributeValueMemberS)
	return v.Value
}

// Whoever writes an item again takes out of it what it no longer has: what stayed
// would keep it in an index, to be read and thrown away by every search from then on.
func TestUpdate_takes_an_item_out_of_the_indexes(t *testing.T) {
	due := epoch.Add(time.Minute)
	full := head()
	full.Due, full.Tags, full.StartedBy = &due, []string{"x"}, "ana"
	bare := head()
	bare.Agent = ""
	wait := journal.WaitRecord{State: session.WaitOpen, Agent: "lab", Due: &due, Wait: session.Wait{
		ID: "w1-1", Kind: session.WaitApproval, Tool: "rm", Who: []string{"ana"}, OpenedAt: epoch, Deadline: &session.Deadline{At: due},
	}}
	answered := wait
	answered.State, answered.Due = session.WaitAnswered, nil
	const always = " blob blobBytes expiresAt"
	for name, c := range map[string]struct {
		item         store.Item
		sets, leaves string
	}{
		"HEAD with everything":   {store.HeadItem(full, 1), "agent body due dueAt list listAt rev root status tags user", "inbox inboxAgent inboxAt inboxKind inboxTool kind tool who" + always},
		"HEAD with nothing":      {store.HeadItem(bare, 1), "body list listAt rev root status", "agent due dueAt inbox inboxAgent inboxAt inboxKind inboxTool kind tags tool user who" + always},
		"a wait that is open":    {store.WaitItem(wait, 1), "agent body due dueAt inbox inboxAgent inboxAt inboxKind inboxTool kind rev root tool who", "list listAt status tags user" + always},
		"a wait that is settled": {store.WaitItem(answered, 1), "body rev", "agent due dueAt inbox inboxAgent inboxAt inboxKind inboxTool kind list listAt root status tags tool user who" + always},
		"an item of no index":    {store.ToolItem(journal.ToolRecord{Call: "c1-1"}, 1), "body rev", "agent due dueAt inbox inboxAgent inboxAt inboxKind inboxTool kind list listAt root status tags tool user who" + always},
	} {
		bubbleOnce(t, name, func(t *testing.T) {
			s, f, _ := scripted(t, is(&dynamodb.UpdateItemOutput{}))
			_, err := s.Update(t.Context(), key, c.item)
			require.NoError(t, err)
			in := f.asked[0].(*dynamodb.UpdateItemInput)
			set, remove, _ := strings.Cut(*in.UpdateExpression, " REMOVE ")
			names := func(expression string) (all []string) {
				for _, part := range strings.Split(strings.TrimPrefix(expression, "SET "), ", ") {
					placeholder, _, _ := strings.Cut(part, " ")
					if attr := in.ExpressionAttributeNames[placeholder]; attr != "w2" { // the id of the write
						all = append(all, attr)
					}
				}
				slices.Sort(all)
				return all
			}
			require.Equal(t, strings.Fields(c.sets), names(set))
			if strings.Contains(c.sets, "due ") {
				// The deadline of an open wait may lie far ahead: it is not among what a wrong clock has put off.
				require.Equal(t, c.item.Wait != nil, strings.Contains(spelled(in, "#due = :v"), "deadline-"))
			}
			want := strings.Fields(c.leaves)
			slices.Sort(want)
			require.Equal(t, want, names(remove))
		})
	}
}
