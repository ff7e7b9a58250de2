// Package bucket keeps in S3 the values that are too large for an item of a table.
package bucket

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
	"github.com/adjourn/adjourn/pkg/store/dynamostore/internal/retry"
)

const (
	// maxInline is the largest value kept in an item: one may have 400 KB.
	maxInline = 256 << 10
	// maxTransaction is how much a transaction may write: DynamoDB takes 4 MB.
	maxTransaction = 7 << 19
	// AtOnce is how many large values travel at the same time.
	AtOnce = 4
)

// API is what a bucket needs of S3.
type API interface {
	PutObject(ctx context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options)) (*s3.PutObjectOutput, error)
	GetObject(ctx context.Context, in *s3.GetObjectInput, opts ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	ListObjectsV2(ctx context.Context, in *s3.ListObjectsV2Input, opts ...func(*s3.Options)) (*s3.ListObjectsV2Output, error)
	DeleteObjects(ctx context.Context, in *s3.DeleteObjectsInput, opts ...func(*s3.Options)) (*s3.DeleteObjectsOutput, error)
}

// Bucket is a bucket in S3.
type Bucket struct {
	API    API
	Name   string
	Sender *retry.Sender
}

// once keeps the SDK from retrying by itself, as for DynamoDB.
func once(o *s3.Options) { o.Retryer = aws.NopRetryer{} }

// Ref says where a value lies. Its key ends in the hash of its content, so the
// same value is written twice without harm and a wrong one is noticed.
type Ref struct {
	Key   string
	Bytes int64
}

// Hash returns the SHA-256 of a value, as text.
func Hash(value []byte) string {
	sum := sha256.Sum256(value)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Prefix is where the values of a session lie; those of a tenant when the key has no id.
func Prefix(key session.Key) string {
	if key.ID == "" {
		return "tenants/" + key.Tenant + "/"
	}
	return "sessions/" + key.Tenant + "/" + key.ID + "/"
}

// Value is a value that may have to go to the bucket.
type Value struct {
	Prefix string
	Bytes  []byte
	// Beside is the size of the rest of its item.
	Beside int
	// Ref is set when the value was moved.
	Ref **Ref
}

// Spill moves values over maxInline to the bucket, and the largest of the others
// until all items fit into one transaction. It returns when all of them are there.
func (b *Bucket) Spill(ctx context.Context, values []Value) error {
	var out []Value
	total := 0
	slices.SortStableFunc(values, func(a, b Value) int { return cmp.Compare(len(a.Bytes), len(b.Bytes)) })
	for _, v := range values { // the smallest first: what no longer fits is the largest
		size := len(v.Bytes) + v.Beside + maxBeside
		if len(v.Bytes) > maxInline || len(v.Bytes) > blobWorth && total+size > maxTransaction {
			out, size = append(out, v), maxBeside
		}
		total += size
	}
	return retry.Each(len(out), AtOnce, func(i int) error { return b.put(ctx, out[i]) })
}

const (
	// maxBeside is more than the keys and the reference of an item take.
	maxBeside = 2 << 10
	// blobWorth is the size up to which a value is never moved to make room.
	blobWorth = 4 << 10
)

func (b *Bucket) put(ctx context.Context, v Value) error {
	ref := &Ref{Key: v.Prefix + Hash(v.Bytes), Bytes: int64(len(v.Bytes))}
	err := b.Sender.Send(ctx, ref.Bytes, func(ctx context.Context) error {
		_, err := b.API.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &b.Name, Key: &ref.Key, Body: bytes.NewReader(v.Bytes), ContentLength: &ref.Bytes,
			ContentType: aws.String("application/octet-stream"),
		}, once)
		return err
	})
	if err != nil {
		return fmt.Errorf("put %s: %w", ref.Key, b.explain(err))
	}
	*v.Ref = ref
	return nil
}

// Get returns a value. prefix is what its key begins with before the hash.
func (b *Bucket) Get(ctx context.Context, ref Ref, prefix string) ([]byte, error) {
	var value []byte
	err := b.Sender.Send(ctx, ref.Bytes, func(ctx context.Context) error {
		out, err := b.API.GetObject(ctx, &s3.GetObjectInput{Bucket: &b.Name, Key: &ref.Key}, once)
		if err != nil {
			return err
		}
		defer out.Body.Close() //nolint:errcheck // read to its end, or of no use
		if value, err = io.ReadAll(io.LimitReader(out.Body, ref.Bytes+1)); err != nil {
			return fmt.Errorf("%w: %w", retry.ErrBroken, err)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("get %s: %w", ref.Key, b.explain(err))
	case prefix+Hash(value) != ref.Key:
		return nil, fmt.Errorf("%w: object %q in bucket %q is not what was put there", store.ErrCorrupt, ref.Key, b.Name)
	}
	return value, nil
}

// explain turns an error of S3 into one of the port.
func (b *Bucket) explain(err error) error {
	var (
		noKey    *s3types.NoSuchKey
		noBucket *s3types.NoSuchBucket
		apiErr   smithy.APIError
		opErr    *smithy.OperationError
	)
	code := ""
	if errors.As(err, &apiErr) {
		code = apiErr.ErrorCode()
	}
	switch {
	case errors.As(err, &noKey), code == "NotFound":
		return fmt.Errorf("%w: the object is missing in bucket %q (%s)", store.ErrCorrupt, b.Name, err.Error())
	case errors.As(err, &noBucket), code == "NoSuchBucket":
		return fmt.Errorf("%w: bucket %q does not exist: deploy the template, or correct the bucket's name, region or endpoint (%s)", store.ErrUnavailable, b.Name, err.Error())
	// For a missing object S3 returns "denied" to callers who may not list the bucket, so this
	// may mean either; a caller who may list it gets "not found".
	case code == "AccessDenied":
		return fmt.Errorf("%w: access to bucket %q is denied: give the role s3:ListBucket, s3:GetObject and s3:PutObject, and kms:Decrypt for the key that the object was written under (PreviousKmsKeyArns) (%s)", store.ErrUnavailable, b.Name, err.Error())
	case errors.As(err, &apiErr), errors.As(err, &opErr):
		return fmt.Errorf("%w: %s", store.ErrUnavailable, err.Error())
	}
	return err
}

// Clear removes all values of a session.
func (b *Bucket) Clear(ctx context.Context, key session.Key) error {
	prefix := Prefix(key)
	for {
		var page *s3.ListObjectsV2Output
		err := b.Sender.Send(ctx, 0, func(ctx context.Context) (err error) {
			page, err = b.API.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &b.Name, Prefix: &prefix}, once)
			return err
		})
		if err != nil {
			return fmt.Errorf("list %s: %w", prefix, b.explain(err))
		}
		if len(page.Contents) == 0 {
			return nil
		}
		var gone s3types.Delete
		gone.Quiet = aws.Bool(true)
		for _, object := range page.Contents {
			gone.Objects = append(gone.Objects, s3types.ObjectIdentifier{Key: object.Key})
		}
		var out *s3.DeleteObjectsOutput
		err = b.Sender.Send(ctx, 0, func(ctx context.Context) (err error) {
			out, err = b.API.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &b.Name, Delete: &gone}, once)
			return err
		})
		switch {
		case err != nil:
			return fmt.Errorf("delete %s: %w", prefix, b.explain(err))
		case len(out.Errors) > 0:
			e := out.Errors[0]
			return fmt.Errorf("delete %s: %w: %s: %s", aws.ToString(e.Key), store.ErrUnavailable, aws.ToString(e.Code), aws.ToString(e.Message))
		}
	}
}
