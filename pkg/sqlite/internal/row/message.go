package row

import (
	"strconv"

	"github.com/adjourn/adjourn/pkg/queue"
	"github.com/adjourn/adjourn/pkg/session/journal"
)

// Message is a message of the queue.
type Message struct {
	Number   int64
	Sent     int64 // nanoseconds
	Receives int64
	Wake     journal.Wake
}

// MessageColumns are what [MessageOf] reads.
const MessageColumns = "mid, sent, receives, tenant, session, seq, kind, v"

// MessageOf reads a message.
func MessageOf(values Values) Message {
	return Message{
		Number: values.Int(0), Sent: values.Int(1), Receives: values.Int(2),
		Wake: journal.Wake{
			V: int(values.Int(7)), Tenant: values.Text(3), ID: values.Text(4), Seq: values.Int(5),
			Kind: journal.WakeKind(values.Text(6)),
		},
	}
}

// Delivery is what its receiver gets.
func (m *Message) Delivery(dead bool) queue.Delivery {
	return queue.Delivery{
		Wake: m.Wake, Message: strconv.FormatInt(m.Number, 36), Receipt: Receipt{Dead: dead, Message: m.Number, Receives: m.Receives}.String(),
		Receives: int(m.Receives), SentAt: Time(m.Sent),
	}
}
