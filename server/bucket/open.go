package bucket

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Credentials are those of an object store.
type Credentials struct{ KeyID, Secret string }

// Open opens a bucket:
//
//	s3://BUCKET/PREFIX?region=REGION&endpoint=https://HOST:PORT
//	gs://BUCKET/PREFIX
//	file:///FOLDER
//
// Prefix and parameters may be left out. It does not connect. Without credentials, those of Amazon are from the environment
// ($AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY) or from the role of the machine. Those of Google are an HMAC key. The folder
// has to be there.
func Open(address string, c Credentials) (Bucket, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("expected an address such as s3://BUCKET, gs://BUCKET or file:///FOLDER")
	}
	switch {
	case u.User != nil:
		return nil, errors.New("credentials do not belong into the address of an object store")
	case (c.KeyID == "") != (c.Secret == ""):
		return nil, errors.New("the key id and the secret of an object store need each other")
	case u.Scheme == "file":
		if u.Host != "" || !filepath.IsAbs(u.Path) || u.RawQuery != "" {
			return nil, fmt.Errorf("%s: expected a whole path, such as file:///srv/objects", address)
		}
		return openFolder(filepath.FromSlash(u.Path))
	}
	at := place{bucket: u.Host, prefix: strings.Trim(u.Path, "/")}
	from := credentials.NewStaticV4(c.KeyID, c.Secret, "")
	q := u.Query()
	switch u.Scheme {
	case "s3":
		at.endpoint, at.region = "https://s3.amazonaws.com", q.Get("region")
		if e := q.Get("endpoint"); e != "" {
			at.endpoint = strings.TrimSuffix(e, "/")
		}
		q.Del("region")
		q.Del("endpoint")
		if c.KeyID == "" {
			from = credentials.NewChainCredentials([]credentials.Provider{&credentials.EnvAWS{}, &credentials.IAM{}})
		}
	case "gs":
		at.endpoint, at.region = "https://storage.googleapis.com", "auto"
		if c.KeyID == "" {
			return nil, errors.New("gs:// needs the id and the secret of an HMAC key")
		}
	default:
		return nil, fmt.Errorf("%q is not an address such as s3://BUCKET, gs://BUCKET or file:///FOLDER", address)
	}
	for name := range q {
		return nil, fmt.Errorf("the address of an object store has no parameter %q", name)
	}
	if at.bucket == "" {
		return nil, fmt.Errorf("%s: the name of the bucket is missing", address)
	}
	return openS3(at, from)
}
