package handles

import (
	"errors"
	"testing"
)

type door struct {
	Use
	closed int
}

func (d *door) Close() error {
	d.closed++
	return nil
}

// TestThings: what is used is open, whatever becomes of the table, and what nobody uses is closed once.
func TestThings(t *testing.T) {
	var doors Table[int, *door]
	var made []*door
	get := func(key int) *door {
		t.Helper()
		d, err := doors.Get(key, func() (*door, error) {
			made = append(made, &door{})
			return made[len(made)-1], nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if d.closed > 0 {
			t.Fatalf("door %d is closed", key)
		}
		return d
	}
	open := func() (n int) {
		for _, d := range made {
			if n += 1 - d.closed; d.closed > 1 {
				t.Error("a door was closed twice")
			}
		}
		return n
	}
	first := get(1)
	if again := get(1); again != first {
		t.Error("it was opened twice")
	}
	first.Release()
	doors.Drop(1, &door{}) // another one
	if get(1) != first {
		t.Error("another one was let go of")
	}
	first.Release()
	doors.Clear()
	second := get(1)
	doors.Drop(1, first)
	if third := get(1); first.closed > 0 || second == first || third != second {
		t.Error("after Clear another one is used, and the first one by who has it")
	}
	second.Release()
	first.Release()
	if first.closed != 1 || second.closed != 0 {
		t.Error("the last user closes it")
	}
	second.Release()
	used := get(2)
	for key := range 3 * MaxOpen {
		get(key).Release()
	}
	if n := open(); n > MaxOpen+1 || used.closed > 0 {
		t.Errorf("%d are open", n)
	}
	used.Release()
	doors.Only(func(key int) bool { return key == 3*MaxOpen-1 })
	if n := open(); n != 1 {
		t.Errorf("%d are open, wanted one", n)
	}
	doors.Drop(3*MaxOpen-1, made[len(made)-1])
	if n := open(); n != 0 {
		t.Errorf("%d are open", n)
	}
	if _, err := doors.Get(0, func() (*door, error) { return nil, errors.ErrUnsupported }); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("%v", err)
	}
	(&door{}).Release() // in no table: nobody closes it
}
