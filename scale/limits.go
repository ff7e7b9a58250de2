package main

import "time"

// Limits of SQS (Amazon SQS quotas; developer guide, fair queues).
const (
	sqsDelay    = 15 * time.Minute
	sqsInFlight = 120_000
	sqsNoisy    = 30 // messages in flight from which on a group counts as noisy
)

// Limits of DynamoDB in units a second (developer guide: designing partition keys;
// service quotas; on-demand capacity).
const (
	partitionWrites = 1000
	partitionReads  = 3000
	newTableWrites  = 4000
	newTableReads   = 12_000
	tableWrites     = 40_000
	tableReads      = 40_000
)

// Limits of Lambda (developer guide: quotas, scaling of SQS event sources).
const (
	mappingFirst       = 5    // invocations of a mapping at first,
	mappingRamp        = 300  // how many more a minute,
	mappingMost        = 1250 // and how many at most
	mappingConcurrency = 1000 // the most that MaximumConcurrency may say
	accountConcurrency = 1000
	youngAccount       = 10
)

// apiRate is how many requests a second API Gateway takes for an account and Region.
const apiRate = 10_000

// What template.yaml gives, where its parameters say nothing else.
const (
	stepTimeout    = 300 * time.Second
	sweepTimeout   = 50 * time.Second
	maxConcurrency = 5
	throttleRate   = 50
	stepMemory     = 256 // MB
	apiMemory      = 256
	sweptAtOnce    = apiMemory / 64
)

// What the program does.
const (
	watchEvery  = 500 * time.Millisecond // a working step looks at HEAD
	renewEvery  = 5 * time.Second
	sweepMargin = 10 * time.Second // of its time the sweep leaves to the end
	dueShards   = 16
	listShards  = 8 // of a tenant's sessions, and of its inbox
)

// What is assumed of AWS.
const (
	coldStart = 150 * time.Millisecond
	request   = 7 * time.Millisecond // of DynamoDB or SQS, in the mean
)

// Prices in dollars, us-east-1 (pricing pages of DynamoDB, SQS, Lambda on arm64, API
// Gateway, CloudWatch, read in November 2026).
const (
	perWrite    = 0.625e-6
	perRead     = 0.125e-6
	perMessage  = 1.3e-6 // sent, received, deleted, in a group
	perGBSecond = 13.3334e-6
	perInvoke   = 0.2e-6
	perAPICall  = 1e-6
	perLogGB    = 0.5
	perStoredGB = 0.25 + 0.2 // a month, with point-in-time recovery
)
