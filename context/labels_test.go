package context

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
)

// withMembers returns the sample with further members.
func withMembers(t *testing.T, members string) *Metadata {
	t.Helper()
	m, err := ParseMetadata([]byte(strings.Replace(sample, `"config"`, members+`, "config"`, 1)))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestLabelsKeepTheirOrder sets labels: the others keep order and spelling, and a member that is no text stays.
func TestLabelsKeepTheirOrder(t *testing.T) {
	m := withMembers(t, `"labels": {"z": "\u0061", "n": 1, "b": "2", "a": "3"}, "kind": "memory", "external_id": "x/y"`)
	texts := m.Labels.Texts()
	if want := map[string]string{"z": "a", "b": "2", "a": "3"}; !maps.Equal(texts, want) || m.Kind != "memory" || m.ExternalID != "x/y" {
		t.Errorf("%v, kind %q, external id %q", texts, m.Kind, m.ExternalID)
	}
	delete(texts, "b")
	texts["a"], texts["y"], texts["c"] = "4", "<&>", "5"
	before := m.Clone()
	if err := m.Labels.SetTexts(texts); err != nil {
		t.Fatal(err)
	}
	const want = `"labels":{"z":"\u0061","n":1,"a":"4","c":"5","y":"<&>"},"kind":"memory","external_id":"x/y","config"`
	if raw := string(RawMetadata(m)); !strings.Contains(raw, want) {
		t.Errorf("%s has no %s", raw, want)
	}
	if before.Labels.Len() != 4 || before.Labels.Text("a") != "3" {
		t.Errorf("a copy changed too: %v", before.Labels)
	}
	for _, bad := range []map[string]string{{"": "x"}, {"\xff": "x"}, {"x": "\xff"}} {
		if err := m.Labels.SetTexts(bad); err == nil {
			t.Errorf("%q were accepted", bad)
		}
	}
	if err := m.Labels.SetTexts(nil); err != nil || string(RawMetadata(m)) == "" || m.Labels.Len() != 1 {
		t.Errorf("%v, %v", m.Labels, err)
	}
}

// TestEditedLabels: labels that a person edits count one by one. The kind and the external id are fixed.
func TestEditedLabels(t *testing.T) {
	base := withMembers(t, `"labels": {"a": "1", "b": "2"}, "kind": "memory", "external_id": "x"`)
	encoded, err := base.Encode()
	if err != nil {
		t.Fatal(err)
	}
	committed := base.Clone()
	committed.Revision++
	if err := committed.Labels.SetTexts(map[string]string{"a": "1", "b": "3", "c": "4"}); err != nil {
		t.Fatal(err)
	}
	var o Object
	if err := o.UnmarshalJSON(encoded); err != nil {
		t.Fatal(err)
	}
	edited := func(labels string) *Metadata {
		if o.Set("labels", nil); labels != "" {
			o.Set("labels", json.RawMessage(labels))
		}
		o.SetText("kind", "other")
		o.SetText("external_id", "y")
		file, err := ParseMetadata(o.Raw())
		if err != nil {
			t.Fatal(err)
		}
		return file
	}
	m, is := Reconcile(committed, edited(`{"a": "9", "b": "2", "d": "5"}`))
	want := map[string]string{"a": "9", "b": "3", "c": "4", "d": "5"}
	if is != ProjectionEdited || !maps.Equal(m.Labels.Texts(), want) || m.Kind != "memory" || m.ExternalID != "x" {
		t.Errorf("%d, %v, kind %q, external id %q", is, m.Labels.Texts(), m.Kind, m.ExternalID)
	}
	if m, _ := Reconcile(committed, edited("")); !maps.Equal(m.Labels.Texts(), map[string]string{"c": "4"}) {
		t.Errorf("without labels: %v", m.Labels.Texts())
	}
}
