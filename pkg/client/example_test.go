package client_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/adjourn/adjourn/pkg/client"
	"github.com/adjourn/adjourn/pkg/session"
)

// A session is started, a person approves what it asks for, and it goes on.
func Example() {
	ctx := context.Background()
	url, key, stop := exampleServer() // in a real program: a server that is there
	defer stop()

	c, err := client.New(client.Config{URL: url, Token: key})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()

	started, err := c.Start(ctx, client.StartParams{
		Request: client.StartRequest{Agent: "toy", Input: client.Text("[{call: deploy, with: {service: web}}, {say: web is live}]")},
		Wait:    20 * time.Second, // until it rests
	})
	if err != nil {
		log.Fatal(err)
	}
	for wait, err := range c.AllWaits(ctx, started.SessionID) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("May it run %s with %s?\n", wait.Tool, wait.Arguments)
		yes := true
		_, err = c.Submit(ctx, client.SubmitParams{
			SessionID: started.SessionID,
			// What is approved is what was shown: the wait, and its nonce.
			Answer: client.SubmitRequest{WaitID: wait.WaitID, Kind: session.AnswerApproval, ApprovalID: wait.ApprovalID, Approved: &yes},
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	for entry, err := range c.Follow(ctx, started.SessionID, started.Entry.Seq) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(entry.Kind)
	}
	s, err := c.Session(ctx, started.SessionID, 0)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.Text)
	// Output:
	// May it run deploy with {"service":"web"}?
	// suspended
	// resumed
	// stepped
	// completed
	// web is live
}

func exampleServer() (url, key string, stop func()) {
	dir, err := os.MkdirTemp("", "adjourn-example-")
	if err != nil {
		log.Fatal(err)
	}
	url, key, end, err := serve(dir)
	if err != nil {
		log.Fatal(err)
	}
	return url, key, func() {
		end()
		_ = os.RemoveAll(dir) // nothing of it is needed
	}
}
