//go:build linux

package lambdatest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Half says on which side of a request a fault may strike.
type Half int

// The halves of a request.
const (
	// Before: it has not been passed on.
	Before Half = iota
	// After: AWS has carried it out; the process does not know yet.
	After
)

func (h Half) String() string {
	if h == Before {
		return "before"
	}
	return "after"
}

// Passage is one half of a request that a process makes of AWS.
type Passage struct {
	Function string
	// Worker numbers the processes of the function, from 1.
	Worker int
	// Invocation is the request id the process is working on.
	Invocation string
	// N numbers the requests of the invocation, from 1.
	N int
	// Operation is service and action, such as dynamodb:UpdateItem.
	Operation string
	Body      []byte
	Half      Half
	// Status of the answer; 0 before there is one.
	Status int
}

func (p *Passage) String() string {
	return fmt.Sprintf("%s #%d %s %d %s", p.Function, p.Worker, p.Operation, p.N, p.Half)
}

// Deed is what happens to a request.
type Deed int

// The deeds. Those that answer in the place of AWS do so without passing the
// request on when they strike before, and although it was carried out when they
// strike after.
const (
	Pass Deed = iota
	// Kill ends the process with SIGKILL.
	Kill
	// Freeze stops the process for a time, then lets it and the request go on.
	Freeze
	// Delay holds the request for a time.
	Delay
	// Lose closes the connection without an answer.
	Lose
	// Conflict answers that another transaction was in the way.
	Conflict
	// Throttle answers that there were too many requests.
	Throttle
	// Fail answers with status 500.
	Fail
)

func (d Deed) String() string {
	return [...]string{"pass", "kill", "freeze", "delay", "lose", "conflict", "throttle", "fail"}[d]
}

// Fate is a deed, with its time where it has one.
type Fate struct {
	Deed Deed
	For  time.Duration
}

// Faults decides about each half of each request. It is called from many
// goroutines at once. nil lets everything pass.
type Faults func(*Passage) Fate

// operation names a request.
func operation(r *http.Request) string {
	if service, action, found := strings.Cut(r.Header.Get("X-Amz-Target"), "."); found {
		if strings.HasPrefix(service, "DynamoDB_") {
			return "dynamodb:" + action
		}
		return "sqs:" + action
	}
	query := r.URL.Query()
	object := strings.Contains(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case r.Method == http.MethodPost && query.Has("delete"):
		return "s3:DeleteObjects"
	case r.Method == http.MethodGet && !object:
		return "s3:ListObjects"
	case r.Method == http.MethodPut && !object:
		return "s3:CreateBucket"
	}
	names := map[string]string{http.MethodGet: "Get", http.MethodPut: "Put", http.MethodHead: "Head", http.MethodDelete: "Delete", http.MethodPost: "Post"}
	return "s3:" + names[r.Method] + "Object"
}

// answer is a response made here.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// fabricate makes AWS's answer for a deed that answers, or false for a pair that
// AWS does not know, such as a conflict of a query.
func fabricate(deed Deed, op string, body []byte) (answer, bool) {
	service, action, _ := strings.Cut(op, ":")
	switch deed {
	case Conflict:
		return conflict(service, action, body)
	case Throttle:
		switch service {
		case "dynamodb":
			return dynamoError("com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException", 400,
				map[string]any{"message": "The level of configured provisioned throughput for the table was exceeded."}), true
		case "sqs":
			return queueError("RequestThrottled", "Sender", 400), true
		}
		return blobError("SlowDown", 503), true
	case Fail:
		switch service {
		case "dynamodb":
			return dynamoError("com.amazonaws.dynamodb.v20120810#InternalServerError", 500, map[string]any{"message": "Internal server error"}), true
		case "sqs":
			return queueError("InternalError", "Receiver", 500), true
		}
		return blobError("InternalError", 500), true
	case Pass, Kill, Freeze, Delay, Lose:
	}
	return answer{}, false
}

func conflict(service, action string, body []byte) (answer, bool) {
	if service != "dynamodb" {
		return answer{}, false
	}
	switch action {
	case "PutItem", "UpdateItem", "DeleteItem":
		return dynamoError("com.amazonaws.dynamodb.v20120810#TransactionConflictException", 400,
			map[string]any{"message": "Transaction is ongoing for the item"}), true
	case "TransactWriteItems", "TransactGetItems":
		var in struct{ TransactItems []json.RawMessage }
		if json.Unmarshal(body, &in) != nil || len(in.TransactItems) == 0 {
			return answer{}, false
		}
		reasons, codes := make([]map[string]string, len(in.TransactItems)), make([]string, len(in.TransactItems))
		for i := range reasons {
			reasons[i], codes[i] = map[string]string{"Code": "None"}, "None"
		}
		last := len(reasons) - 1
		reasons[last] = map[string]string{"Code": "TransactionConflict", "Message": "Transaction is ongoing for the item"}
		codes[last] = "TransactionConflict"
		return dynamoError("com.amazonaws.dynamodb.v20120810#TransactionCanceledException", 400, map[string]any{
			"CancellationReasons": reasons,
			"Message":             "Transaction cancelled, please refer cancellation reasons for specific reasons [" + strings.Join(codes, ", ") + "]",
		}), true
	}
	return answer{}, false
}

func dynamoError(kind string, status int, fields map[string]any) answer {
	fields["__type"] = kind
	body, _ := json.Marshal(fields) // strings and maps of them can be written
	return answer{status, http.Header{"Content-Type": {"application/x-amz-json-1.0"}}, body}
}

func queueError(code, fault string, status int) answer {
	body, _ := json.Marshal(map[string]string{"__type": "com.amazonaws.sqs#" + code, "message": code})
	return answer{status, http.Header{"Content-Type": {"application/x-amz-json-1.0"}, "X-Amzn-Query-Error": {code + ";" + fault}}, body}
}

func blobError(code string, status int) answer {
	body := fmt.Appendf(nil, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>%s</Message></Error>`, code, code)
	return answer{status, http.Header{"Content-Type": {"application/xml"}}, body}
}
