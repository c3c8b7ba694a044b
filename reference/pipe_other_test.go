//go:build !unix

package reference

import "errors"

func makePipe(string) error { return errors.ErrUnsupported }
