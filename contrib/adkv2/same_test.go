package adkv2

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "copy the shared files from package adk")

// TestSameAsVersion1: the adapters of both versions differ in their import paths and in event.go, and nowhere else.
func TestSameAsVersion1(t *testing.T) {
	for _, name := range []string{
		"service.go", "session.go", "artifact.go", "service_test.go", "artifact_test.go", "restart_test.go", "example_test.go",
		"adkmemory/memory.go", "adkmemory/memory_test.go",
	} {
		first, err := os.ReadFile(filepath.Join("..", "adk", name))
		if err != nil {
			t.Fatal(err)
		}
		want := strings.NewReplacer(
			"package adkmemory", "package adkmemory", "contrib/adk/", "contrib/adkv2/",
			"google.golang.org/adk/", "google.golang.org/adk/v2/", "contrib/adk\"", "contrib/adkv2\"",
			"package adk", "package adkv2", "adk.New", "adkv2.New", "adk.Session", "adkv2.Session", "NewEventWithContext", "NewEvent",
		).Replace(string(first))
		if *update {
			if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("%s is not that of package adk (%v): run go test -run TestSameAsVersion1 -update", name, err)
		}
	}
}
