package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// s3 is a bucket at Amazon S3, or at what speaks its protocol.
type s3 struct {
	core   minio.Core
	bucket string
	prefix string // of all names: empty, or it ends with a slash
}

// place is where a bucket is.
type place struct {
	endpoint string // scheme, host and port
	region   string // empty: the store is asked
	bucket   string
	prefix   string
}

// attempts is how often a request is sent that fails for a reason that may pass.
const attempts = 3

func openS3(at place, c *credentials.Credentials) (*s3, error) {
	u, err := url.Parse(at.endpoint)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" || u.Path != "" || u.User != nil || u.RawQuery != "" {
		return nil, fmt.Errorf("endpoint %q: expected an address such as https://host:9000", at.endpoint)
	}
	client, err := minio.New(u.Host, &minio.Options{Creds: c, Secure: u.Scheme == "https", Region: at.region, MaxRetries: attempts})
	if err != nil {
		return nil, err
	}
	client.SetAppInfo("ctxserver", "1")
	s := &s3{core: minio.Core{Client: client}, bucket: at.bucket}
	if at.prefix != "" {
		s.prefix = at.prefix + "/"
	}
	return s, nil
}

// Put implements [Bucket]. The store compares the content with its checksum before it answers.
func (s *s3) Put(ctx context.Context, name string, data []byte) error {
	_, err := s.core.Client.PutObject(ctx, s.bucket, s.prefix+name, bytes.NewReader(data), int64(len(data)), minio.PutObjectOptions{
		ContentType: "application/octet-stream", SendContentMd5: true, DisableMultipart: true,
	})
	return err
}

// Get implements [Bucket].
func (s *s3) Get(ctx context.Context, name string, most int) ([]byte, error) {
	body, _, _, err := s.core.GetObject(ctx, s.bucket, s.prefix+name, minio.GetObjectOptions{})
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey {
		return nil, fmt.Errorf("%w: %w", ErrMissing, err)
	}
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // it was read
	return readAll(body, most)
}

// Remove implements [Bucket].
func (s *s3) Remove(ctx context.Context, name string) error {
	err := s.core.RemoveObject(ctx, s.bucket, s.prefix+name, minio.RemoveObjectOptions{})
	if minio.ToErrorResponse(err).Code == minio.NoSuchKey { // Google's answer
		return nil
	}
	return err
}

// List implements [Bucket].
func (s *s3) List(ctx context.Context, folder string) iter.Seq2[Object, error] {
	return func(yield func(Object, error) bool) {
		o := minio.ListObjectsOptions{Prefix: s.prefix + folder + "/", Recursive: true}
		for info := range s.core.ListObjectsIter(ctx, s.bucket, o) {
			if info.Err != nil {
				yield(Object{}, info.Err)
				return
			}
			if !yield(Object{info.Key[len(s.prefix):], info.LastModified}, nil) {
				return
			}
		}
	}
}

// IsUnreachable reports whether an error says that the store does not answer, or cannot now, so that another try may help.
func IsUnreachable(err error) bool {
	var r minio.ErrorResponse
	if errors.As(err, &r) {
		return r.StatusCode >= http.StatusInternalServerError || r.StatusCode == http.StatusTooManyRequests
	}
	var n net.Error
	return errors.As(err, &n) || errors.Is(err, io.ErrUnexpectedEOF)
}
