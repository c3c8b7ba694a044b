package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

type versionRecord struct {
	Record   string `json:"record"`
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Time     string `json:"time,omitempty"` // of that revision
	Go       string `json:"go"`
}

func versionLine() string {
	v := version()
	text := "ctxtool " + v.Version
	if v.Revision != "" {
		text += " (" + v.Revision + ")"
	}
	return fmt.Sprintf("%s %s %s/%s", text, v.Go, runtime.GOOS, runtime.GOARCH)
}

// version is the version that the Go tool recorded in the binary.
func version() versionRecord {
	v := versionRecord{Record: "version", Version: "(devel)", Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	if info.Main.Version != "" {
		v.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.time" {
			v.Time = s.Value
		}
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			v.Revision = s.Value[:12]
		}
	}
	return v
}
