package usage

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ctxdir/ctxdir/transcript"
)

// record is what a message says about a call of a model.
type record struct {
	key     callKey // of what is the same wherever the call is recorded; zero for a record that is not repeated
	local   bool    // the key is unique only among contexts that were forked from one another
	model   string
	tokens  Tokens
	counted bool // it has tokens
	cost    float64
	priced  bool
	calls   int64
	sums    bool // tokens and cost are those of the conversation so far
	total   bool // of calls that have records too, as a rule: it counts only if they do not
}

// callKey identifies a call wherever it is recorded.
type callKey [16]byte

// marks are in every message that says something about calls, or about the model.
var marks = [][]byte{
	[]byte(`sage":`), []byte(`okens":`), []byte(`sage_metadata":`), []byte(`sageMetadata":`), []byte(`sage_data":`), []byte(`token_count"`),
	[]byte(`odelMetrics":`), []byte(`odel_stats":`), []byte(`llm_metrics":`), []byte(`turn_context"`),
}

// mayRecord reports whether a message may have records. It saves parsing the others.
func mayRecord(body json.RawMessage) bool {
	return slices.ContainsFunc(marks, func(mark []byte) bool { return bytes.Contains(body, mark) })
}

// maxModel bounds the name of a model, in bytes: a longer one is damage, and is cut off.
const maxModel = 256

// recordsOf returns the records in a message, and the model of the calls that follow it, if it says so.
func recordsOf(body json.RawMessage) (records []record, next string) {
	records, next = recordsIn(transcript.ObjectOf(body))
	for i := range records {
		r := &records[i]
		if r.model = cutName(r.model); !r.priced {
			r.cost = 0
		}
	}
	return records, cutName(next)
}

func cutName(name string) string { return strings.Clone(name[:min(len(name), maxModel)]) }

func recordsIn(o transcript.Object) (records []record, next string) {
	payload := transcript.ObjectOf(o["payload"])
	switch kind := o.Text("type"); {
	case kind == "turn_context":
		return nil, payload.Text("model")
	case payload.Text("type") == "token_count":
		return codexRecords(payload), ""
	case transcript.ObjectOf(o["info"]) != nil && transcript.KindOf(o["parts"]) == '[':
		return opencodeRecords(o), ""
	case kind == "assistant.usage":
		return copilotRecord(o), ""
	case kind == "session.shutdown":
		return copilotTotals(o), ""
	case transcript.ObjectOf(o["llm_metrics"])["accumulated_token_usage"] != nil:
		return openHandsRecords(o), ""
	}
	records = anyRecords(o)
	if stats := statsRecord(transcript.ObjectOf(o["info"])); stats != nil {
		records = append(records, *stats)
	}
	return records, ""
}

// codexRecords reads an event of Codex. Codex repeats events whose totals are the same.
func codexRecords(payload transcript.Object) []record {
	info := transcript.ObjectOf(payload["info"])
	tokens, ok := tokensOf(info["last_token_usage"])
	if !ok {
		return nil
	}
	return []record{{key: sumKey("codex " + string(info["total_token_usage"])), local: true, tokens: tokens, counted: true, calls: 1}}
}

// opencodeRecords reads a message of opencode: each step has a part that ends it. A fork of a session copies messages
// under other ids, with the same times.
func opencodeRecords(o transcript.Object) (records []record) {
	info := transcript.ObjectOf(o["info"])
	key := "opencode " + string(transcript.ObjectOf(info["time"])["created"])
	add := func(of transcript.Object) {
		tokens, ok := tokensOf(of["tokens"])
		cost, priced := number(of["cost"])
		if !ok && !priced {
			return
		}
		records = append(records, record{
			key: sumKey(key + " " + strconv.Itoa(len(records)) + " " + string(of["tokens"])), model: info.Text("modelID"),
			tokens: tokens, counted: ok, cost: cost, priced: priced, calls: 1,
		})
	}
	for _, part := range transcript.List(o["parts"]) {
		if p := transcript.ObjectOf(part); p.Text("type") == "step-finish" {
			add(p)
		}
	}
	if tokens, ok := tokensOf(info["tokens"]); records == nil && ok && tokens.Total > 0 {
		add(info)
	}
	return records
}

// copilotRecord reads the counts of a call of Copilot CLI.
func copilotRecord(o transcript.Object) []record {
	tokens, ok := tokensOf(o["data"])
	if !ok {
		return nil
	}
	return []record{{
		key: sumKey("copilot " + o.Text("id")), local: true, model: transcript.ObjectOf(o["data"]).Text("model"), tokens: tokens, counted: true,
		calls: 1,
	}}
}

// copilotTotals reads the end of a session of Copilot CLI, which has the totals of each model.
func copilotTotals(o transcript.Object) (records []record) {
	metrics := transcript.ObjectOf(transcript.ObjectOf(o["data"])["modelMetrics"])
	for model, v := range metrics {
		m := transcript.ObjectOf(v)
		tokens, ok := tokensOf(m["usage"])
		if !ok {
			continue
		}
		calls, _ := countIn(transcript.ObjectOf(m["requests"]), paths("count"))
		records = append(records, record{
			key: sumKey("copilot " + o.Text("id") + " " + model), local: true, model: model, tokens: tokens, counted: true,
			calls: max(calls, 1), total: true,
		})
	}
	slices.SortFunc(records, func(a, b record) int { return bytes.Compare([]byte(a.model), []byte(b.model)) })
	return records
}

// openHandsRecords reads an event of OpenHands, with the sums of the conversation so far.
func openHandsRecords(o transcript.Object) []record {
	metrics := transcript.ObjectOf(o["llm_metrics"])
	sums := metrics["accumulated_token_usage"]
	tokens, ok := tokensOf(sums)
	cost, priced := number(metrics["accumulated_cost"])
	return []record{{
		model: transcript.ObjectOf(sums).Text("model"), tokens: tokens, counted: ok, cost: cost, priced: priced, calls: 1, sums: true,
	}}
}

// statsRecord reads the totals of a run of SWE-agent or mini-swe-agent, nil if there are none.
func statsRecord(info transcript.Object) *record {
	stats := transcript.ObjectOf(info["model_stats"])
	if stats == nil {
		return nil
	}
	tokens, _ := tokensOf(info["model_stats"])
	cost, priced := number(stats["instance_cost"])
	calls, _ := countIn(stats, paths("api_calls"))
	if tokens.Total == 0 && cost == 0 {
		return nil
	}
	return &record{tokens: tokens, counted: tokens.Total > 0, cost: cost, priced: priced && cost > 0, calls: max(calls, 1), total: true}
}

// usageNames are the members that hold the counts of a call.
var usageNames = []string{"usage", "usage_metadata", "usageMetadata", "UsageMetadata", "token_usage", "tokens"}

// anyRecords reads the counts in a message of an API or a framework, or in the record of a tool around such a message:
// of Claude Code, Gemini CLI, pi, mini-swe-agent and others.
func anyRecords(o transcript.Object) []record {
	message := transcript.ObjectOf(o["message"])
	data := transcript.ObjectOf(o["data"])
	extra := transcript.ObjectOf(o["extra"])
	call := transcript.ObjectOf(o["tool_call_metadata"]) // of OpenHands
	places := []transcript.Object{
		o, message, data,
		transcript.ObjectOf(transcript.ObjectOf(data["message"])["message"]), // a sub-agent's, in a report of its progress
		transcript.ObjectOf(o["kwargs"]), transcript.ObjectOf(extra["response"]), transcript.ObjectOf(call["model_response"]),
	}
	for _, in := range slices.Clone(places) {
		places = append(places, transcript.ObjectOf(in["response_metadata"]), transcript.ObjectOf(in["response_meta"]))
	}
	for _, in := range places {
		for _, name := range usageNames {
			if tokens, ok := tokensOf(in[name]); ok {
				r := record{tokens: tokens, counted: true, calls: 1, model: in.Text("model", "modelVersion", "model_name", "ls_model_name")}
				if r.model == "<synthetic>" { // a message that Claude Code made up
					return nil
				}
				if r.model == "" {
					r.model = firstText("model", "modelVersion", "model_name", o, message, transcript.ObjectOf(in["response_metadata"]))
				}
				r.key, r.local = keyOf(o, in, &r.tokens)
				r.cost, r.priced = costOf(o, in, transcript.ObjectOf(in[name]), extra)
				return []record{r}
			}
		}
	}
	return nil
}

func firstText(a, b, c string, objects ...transcript.Object) string {
	for _, o := range objects {
		if text := o.Text(a, b, c); text != "" {
			return text
		}
	}
	return ""
}

// globalID is the length from which an id of an API or a tool is taken for unique everywhere.
const globalID = 16

// keyOf identifies a call by the id that the provider gave its reply, or by its id in the conversation and what went in:
// the output of a reply grows while it is recorded. A tool that keeps neither has the time and the counts of the call.
func keyOf(o, in transcript.Object, t *Tokens) (key callKey, local bool) {
	input := fmt.Sprint(" ", t.Input, " ", t.CacheRead, " ", t.CacheWrite)
	switch id := in.Text("id", "responseId", "response_id"); {
	case len(id) >= globalID:
		return sumKey("id " + id), false
	case id != "" && in["timestamp"] == nil:
		return sumKey("id " + id + input), true
	}
	id, at := o.Text("id"), in["timestamp"]
	if at == nil {
		at = o["timestamp"]
	}
	switch {
	case len(id) >= globalID:
		return sumKey("id " + id), false
	case at == nil:
		return callKey{}, false
	}
	return sumKey(fmt.Sprint("at ", id, " ", string(at), input, " ", t.Output)), false
}

// costOf returns the cost of a call in US dollars, if it is recorded.
func costOf(o, in, counts, extra transcript.Object) (float64, bool) {
	for _, v := range []json.RawMessage{
		o["costUSD"], transcript.ObjectOf(counts["cost"])["total"], counts["cost"], in["cost"], extra["cost"], in["response_cost"],
	} {
		if cost, ok := number(v); ok {
			return cost, true
		}
	}
	return 0, false
}

// sumKey is the key of a call that a text identifies.
func sumKey(text string) (key callKey) {
	sum := sha256.Sum256([]byte(text))
	copy(key[:], sum[:])
	return key
}
