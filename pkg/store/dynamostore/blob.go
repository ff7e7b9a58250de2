package dynamostore

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
	"strings"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"

	"github.com/adjourn/adjourn/pkg/session"
	"github.com/adjourn/adjourn/pkg/store"
)

const (
	// maxInline is the largest value kept in an item: one may have 400 KB.
	maxInline = 256 << 10
	// maxTransaction is how much a transaction may write: DynamoDB takes 4 MB.
	maxTransaction = 7 << 19
	// blobsAtOnce is how many large values travel at the same time.
	blobsAtOnce = 4
)

// blob is a value in the bucket. Its key ends in the hash of its content, so the
// same value is written twice without harm and a wrong one is noticed.
type blob struct {
	key   string
	bytes int64
}

// put makes attr hold the value, or says where it lies.
func (b *blob) put(item attributes, attr string, value []byte) {
	if b == nil {
		inline(item, attr, value)
		return
	}
	item[attrBlob], item[attrBlobBytes] = text(b.key), number(b.bytes)
}

func contentHash(value []byte) string {
	sum := sha256.Sum256(value)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// blobPrefix is where the values of a session lie; those of a tenant when the key has no id.
func blobPrefix(key session.Key) string {
	if key.ID == "" {
		return "tenants/" + key.Tenant + "/"
	}
	return "sessions/" + key.Tenant + "/" + key.ID + "/"
}

// large is a value that may have to go to the bucket.
type large struct {
	prefix string
	value  []byte
	item   attributes // the rest of its item
	blob   **blob
}

// spill moves values over maxInline to the bucket, and the largest of the others
// until all items fit into one transaction. It returns when all of them are there.
func (s *Store) spill(ctx context.Context, values []large) error {
	var out []large
	total := 0
	slices.SortStableFunc(values, func(a, b large) int { return cmp.Compare(len(a.value), len(b.value)) })
	for _, v := range values { // the smallest first: what no longer fits is the largest
		size := len(v.value) + itemSize(v.item) + maxBeside
		if len(v.value) > maxInline || len(v.value) > blobWorth && total+size > maxTransaction {
			out, size = append(out, v), maxBeside
		}
		total += size
	}
	return each(len(out), blobsAtOnce, func(i int) error { return s.putBlob(ctx, out[i]) })
}

const (
	// maxBeside is more than the keys and the reference of an item take.
	maxBeside = 2 << 10
	// blobWorth is the size up to which a value is never moved to make room.
	blobWorth = 4 << 10
)

func (s *Store) putBlob(ctx context.Context, v large) error {
	b := &blob{key: v.prefix + contentHash(v.value), bytes: int64(len(v.value))}
	err := s.retry(ctx, b.bytes, func(ctx context.Context) error {
		_, err := s.cfg.Blobs.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &s.cfg.Bucket, Key: &b.key, Body: bytes.NewReader(v.value), ContentLength: &b.bytes,
			ContentType: aws.String("application/octet-stream"),
		}, onceS3)
		return err
	})
	if err != nil {
		return fmt.Errorf("put %s: %w", b.key, s.explainBlob(err))
	}
	*v.blob = b
	return nil
}

// value returns what an item holds, wherever it lies. prefix is where it must lie.
func (s *Store) value(ctx context.Context, item attributes, attr, prefix string) ([]byte, error) {
	key := textOf(item, attrBlob)
	if key == "" {
		value, ok := bytesOf(item, attr)
		if !ok {
			return nil, fmt.Errorf("%w: item %s has no %s", store.ErrCorrupt, textOf(item, attrSK), attr)
		}
		return value, nil
	}
	hash, ok := strings.CutPrefix(key, prefix)
	if !ok {
		return nil, fmt.Errorf("%w: item %s refers to object %q of another session", store.ErrCorrupt, textOf(item, attrSK), key)
	}
	size := numberOf(item, attrBlobBytes)
	var value []byte
	err := s.retry(ctx, size, func(ctx context.Context) error {
		out, err := s.cfg.Blobs.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.cfg.Bucket, Key: &key}, onceS3)
		if err != nil {
			return err
		}
		defer out.Body.Close() //nolint:errcheck // read to its end, or of no use
		if value, err = io.ReadAll(io.LimitReader(out.Body, size+1)); err != nil {
			return fmt.Errorf("%w: %w", errBroken, err)
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("get %s: %w", key, s.explainBlob(err))
	case contentHash(value) != hash:
		return nil, fmt.Errorf("%w: object %q in bucket %q is not what was put there", store.ErrCorrupt, key, s.cfg.Bucket)
	}
	return value, nil
}

// errBroken: the answer began and broke off.
var errBroken = errors.New("the answer broke off")

// explainBlob is explain for errors of S3.
func (s *Store) explainBlob(err error) error {
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
		return fmt.Errorf("%w: the object is missing in bucket %q (%s)", store.ErrCorrupt, s.cfg.Bucket, err.Error())
	case errors.As(err, &noBucket), code == "NoSuchBucket":
		return fmt.Errorf("%w: bucket %q does not exist: deploy the template, or correct the bucket's name, region or endpoint (%s)", store.ErrUnavailable, s.cfg.Bucket, err.Error())
	// For a missing object S3 returns "denied" to callers who may not list the bucket, so this
	// may mean either; a caller who may list it gets "not found".
	case code == "AccessDenied":
		return fmt.Errorf("%w: access to bucket %q is denied: give the role s3:ListBucket, s3:GetObject and s3:PutObject, and kms:Decrypt for the key that the object was written under (PreviousKmsKeyArns) (%s)", store.ErrUnavailable, s.cfg.Bucket, err.Error())
	case errors.As(err, &apiErr), errors.As(err, &opErr):
		return fmt.Errorf("%w: %s", store.ErrUnavailable, err.Error())
	}
	return err
}

// deleteBlobs removes all values of a session.
func (s *Store) deleteBlobs(ctx context.Context, key session.Key) error {
	prefix := blobPrefix(key)
	for {
		var page *s3.ListObjectsV2Output
		err := s.retry(ctx, 0, func(ctx context.Context) (err error) {
			page, err = s.cfg.Blobs.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &s.cfg.Bucket, Prefix: &prefix}, onceS3)
			return err
		})
		if err != nil {
			return fmt.Errorf("list %s: %w", prefix, s.explainBlob(err))
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
		err = s.retry(ctx, 0, func(ctx context.Context) (err error) {
			out, err = s.cfg.Blobs.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &s.cfg.Bucket, Delete: &gone}, onceS3)
			return err
		})
		switch {
		case err != nil:
			return fmt.Errorf("delete %s: %w", prefix, s.explainBlob(err))
		case len(out.Errors) > 0:
			e := out.Errors[0]
			return fmt.Errorf("delete %s: %w: %s: %s", aws.ToString(e.Key), store.ErrUnavailable, aws.ToString(e.Code), aws.ToString(e.Message))
		}
	}
}

// each calls do for 0 to n-1, so many at a time, and returns the first error by number.
func each(n, atOnce int, do func(i int) error) error {
	if n == 1 {
		return do(0)
	}
	errs := make([]error, n)
	turns := make(chan struct{}, atOnce)
	var all sync.WaitGroup
	for i := range n {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			errs[i] = do(i)
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// itemSize is what an item, or a part of one, counts for: the bytes of its names
// and values (binary unencoded, numbers packed by two digits).
func itemSize(item attributes) int {
	size := 0
	for name, v := range item {
		size += len(name)
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			size += len(v.Value)
		case *types.AttributeValueMemberB:
			size += len(v.Value)
		case *types.AttributeValueMemberN:
			size += (len(v.Value)+1)/2 + 1
		case *types.AttributeValueMemberSS:
			for _, text := range v.Value {
				size += len(text)
			}
		default: // a bool or null
			size++
		}
	}
	return size
}
