// What a thread stores: records of checkpoints and of pending writes, each with what changed since the parent.
import { createHash } from "node:crypto";
import { WRITES_IDX_MAP, compareWritesSortKeys, writesSortKey } from "@langchain/langgraph-checkpoint";

const isObject = (v) => typeof v === "object" && v !== null && !Array.isArray(v);

/** A member of an object that stands for an object which the parent checkpoint, or a write to it, has already. */
const SAME = "ctxdir:same";
/** Objects with shorter texts are repeated. */
const minSame = 80;

/** Copy a value with f applied to the objects that states repeat: messages, and the elements of lists. */
function mapObjects(value, f) {
  if (Array.isArray(value)) return value.map((v) => (isObject(v) ? f(v) : v));
  if (!isObject(value)) return value;
  if (value.lc === 1 || SAME in value) return f(value);
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, Array.isArray(v) ? mapObjects(v, f) : v]));
}

const without = (o, key) => Object.fromEntries(Object.entries(o).filter(([k]) => k !== key));

/** The key of an object, by its text. A reducer gives an id to a message that has none, so a message counts without it. */
function keyOf(o) {
  const text = JSON.stringify(isObject(o.kwargs) ? { ...o, kwargs: without(o.kwargs, "id") } : o);
  return text.length < minSame ? undefined : createHash("sha256").update(text).digest("base64url").slice(0, 16);
}

/** The known object as this one has it: with its id, at the same place among the members. */
function withID(o, id, at) {
  const members = Object.entries(without(o.kwargs, "id"));
  members.splice(at, 0, ["id", id]);
  return { ...o, kwargs: Object.fromEntries(members) };
}

/** The members of next that are not in last, and the names of those that are gone. */
function changes(last, next) {
  const set = Object.entries(next).filter(([k, v]) => !Object.hasOwn(last, k) || JSON.stringify(last[k]) !== JSON.stringify(v));
  const gone = Object.keys(last).filter((k) => !Object.hasOwn(next, k));
  return gone.length ? [Object.fromEntries(set), gone] : [Object.fromEntries(set)];
}

const changed = (last, [set, gone = []]) => ({ ...Object.fromEntries(Object.entries(last).filter(([k]) => !gone.includes(k))), ...set });

/** A value of a channel is {value}, {sealed: [type, base64]}, or {before, more}: a list that another one begins. */
function listOf(node) {
  const parts = [];
  for (; node.before; node = node.before) parts.push(node.more);
  return node.value === undefined ? undefined : parts.length ? node.value.concat(...parts.reverse()) : node.value;
}

/** The JSON of a value. The newest value of a channel keeps it. */
const jsonOf = (node) => (node.json ??= Buffer.from(JSON.stringify(listOf(node))));

/** A value that the serializer did not write as JSON, or that looks like a reference. */
const seal = ([type, bytes]) => [type, Buffer.from(bytes).toString("base64")];

/** The value in JSON, in lists those after the first bytes; undefined if the record cannot have it as JSON. */
function parse([type, bytes], from = 0) {
  const text = type === "json" && (from ? "[" : "") + Buffer.from(bytes.buffer, bytes.byteOffset + from, bytes.length - from);
  return type === "json" && !text.includes(SAME) ? JSON.parse(text) : undefined;
}

export async function load(serde, node) {
  if (node.sealed) return serde.loadsTyped(node.sealed[0], new Uint8Array(Buffer.from(node.sealed[1], "base64")));
  return serde.loadsTyped("json", JSON.stringify(listOf(node)));
}

/** The records of one namespace of a thread, in order. */
export class Course {
  length = 0;
  bytes = 0;
  checkpoints = new Map();
  #writes = new Map(); // by checkpoint, then by task and index
  #known = new Map(); // by checkpoint, then by key: objects of the checkpoint and of writes to it

  /** Take the next record into account. */
  add(record, id, bytes) {
    this.length++;
    this.bytes += bytes;
    this.last = id;
    if (record.type === "writes") this.#addWrites(record);
    else if (record.type === "checkpoint") this.#addCheckpoint(record);
  }

  writes(id) {
    const all = [...(this.#writes.get(id)?.values() ?? [])];
    const key = (w) => writesSortKey(w.path, w.task, w.index);
    return all.sort((a, b) => compareWritesSortKeys(key(a), key(b)));
  }

  #of(map, id) {
    return map.get(id) ?? map.set(id, new Map()).get(id);
  }

  /** Replace references by the objects for which they stand, and remember the objects of this record. */
  #restore(value, from, of) {
    return mapObjects(value, (o) => {
      const [key, ...id] = o[SAME] ?? [];
      const known = key && this.#known.get(from)?.get(key);
      if (key && !known) throw new Error(`the checkpoint refers to an object that ${from} does not have`);
      const object = !known ? o : id.length ? withID(known, ...id) : known;
      const own = known ? key : keyOf(o);
      if (own) this.#of(this.#known, of).set(own, object);
      return object;
    });
  }

  /** Replace objects that are known by references. */
  #share(value, from) {
    const known = this.#known.get(from);
    if (!known) return value;
    return mapObjects(value, (o) => {
      const key = keyOf(o);
      const same = key && known.get(key);
      if (!same) return o;
      const text = JSON.stringify(o);
      if (text === JSON.stringify(same)) return { [SAME]: [key] };
      const id = [o.kwargs?.id, Object.keys(o.kwargs ?? {}).indexOf("id")];
      return id[1] >= 0 && text === JSON.stringify(withID(same, ...id)) ? { [SAME]: [key, ...id] } : o;
    });
  }

  #addCheckpoint(r) {
    const parent = r.parent === undefined ? this.newest : (r.parent ?? undefined);
    const base = this.checkpoints.get(parent) ?? nothing;
    const values = { ...base.values };
    for (const channel of r.drop ?? []) delete values[channel];
    const put = (of, node) => Object.entries(of ?? {}).forEach(([channel, v]) => (values[channel] = node(v, values[channel])));
    put(r.set, (v) => ({ value: this.#restore(v, parent, r.id) }));
    put(r.add, (v, before) => ({ before, more: this.#restore(v, parent, r.id) }));
    put(r.sealed, (sealed) => ({ sealed }));
    this.newest = r.id;
    this.checkpoints.set(r.id, {
      id: r.id, v: r.v ?? base.v, ts: r.ts, parent, values, versions: changed(base.versions, r.versions), seen: changed(base.seen, r.seen),
      metadata: Array.isArray(r.metadata) ? changed(base.metadata, r.metadata) : {}, sealed: r.metadata.sealed,
    });
  }

  #addWrites({ checkpoint = this.newest, task, path = "", writes }) {
    const have = this.#of(this.#writes, checkpoint);
    writes.forEach(([channel, v, sealed], i) => {
      const index = WRITES_IDX_MAP[channel] || i;
      const key = `${task},${index}`;
      if (index >= 0 && have.has(key)) return;
      const node = sealed ? { sealed } : { value: this.#restore(v, checkpoint, checkpoint) };
      have.set(key, { task, path, index, channel, node });
    });
  }

  /** The record of a checkpoint. values are the channels with a new version, as the serializer wrote them. */
  checkpoint(parent, { id, v, ts, channel_values, channel_versions, versions_seen }, metadata, newVersions, values) {
    const base = this.checkpoints.get(parent) ?? nothing;
    const r = { type: "checkpoint", id, ts, ...(v !== base.v && { v }), ...(parent !== this.newest && { parent: parent ?? null }) };
    const drop = Object.keys(base.values).filter((channel) => !Object.hasOwn(channel_values, channel) ||
      (!Object.hasOwn(newVersions, channel) && base.versions[channel] !== channel_versions[channel]));
    if (drop.length) r.drop = drop;
    for (const [channel, typed] of Object.entries(values)) {
      const before = base.values[channel];
      const json = before && !before.sealed && jsonOf(before);
      if (json && typed[0] === "json" && json.equals(typed[1])) continue;
      const from = json && typed[0] === "json" && begins(json, typed[1]) ? json.length : 0;
      const value = parse(typed, from);
      if (value === undefined) (r.sealed ??= {})[channel] = seal(typed);
      else (r[from ? "add" : "set"] ??= {})[channel] = this.#share(value, parent);
    }
    r.versions = changes(base.versions, channel_versions);
    r.seen = changes(base.seen, versions_seen);
    const value = parse(metadata);
    r.metadata = value === undefined ? { sealed: seal(metadata) } : changes(base.metadata, value);
    return r;
  }

  /** Keep the JSON of the values of a checkpoint, with which its child will compare its own; those of its parent go. */
  keep(parent, id, values) {
    for (const [channel, [type, json]] of Object.entries(values)) {
      const before = this.checkpoints.get(parent)?.values[channel];
      const node = this.checkpoints.get(id).values[channel];
      if (before && before !== node) delete before.json;
      if (type === "json" && !node.sealed) node.json = Buffer.from(json.buffer, json.byteOffset, json.length);
    }
  }

  /** The record of the writes of a task that are new; undefined if there are none. */
  pending(checkpoint, task, path, values) {
    const have = this.#writes.get(checkpoint);
    if (!values.some(([channel], i) => WRITES_IDX_MAP[channel] < 0 || !have?.has(`${task},${i}`))) return undefined;
    const writes = values.map(([channel, typed]) => {
      const value = parse(typed);
      return value === undefined ? [channel, null, seal(typed)] : [channel, this.#share(value, checkpoint)];
    });
    return { type: "writes", ...(checkpoint !== this.newest && { checkpoint }), task, ...(path && { path }), writes };
  }
}

const nothing = { values: {}, versions: {}, seen: {}, metadata: {} };

/** Report whether a list in JSON begins with the elements of another one, and has more. */
const begins = (list, json) => list.length > 2 && list[0] === 91 && json[list.length - 1] === 44 &&
  list.subarray(0, -1).equals(json.subarray(0, list.length - 1));
